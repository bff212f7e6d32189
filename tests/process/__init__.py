"""Real worker processes: killed, stopped, racing."""
