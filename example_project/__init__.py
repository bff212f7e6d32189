"""A small shop with a job queue. ``python3 -m example_project`` shows it at work."""
