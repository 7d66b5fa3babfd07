"""Errors, pools and timers: what knows no tensor and no graph."""
