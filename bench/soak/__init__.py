"""The soak: a server under everything at once; `python -m bench.soak --minutes N`."""
