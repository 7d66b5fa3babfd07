"""Requests of every front while models come and go: `python -m bench.mixed_load --minutes N`."""
