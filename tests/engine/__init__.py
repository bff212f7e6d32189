"""The queue's contract, on whichever engine: a file for each transition."""
