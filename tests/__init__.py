"""The tests. ``python3 -m tests`` runs them all, with nothing installed but Python."""
