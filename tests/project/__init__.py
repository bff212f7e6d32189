"""The checkout itself: its set-up, its example, its house rules."""
