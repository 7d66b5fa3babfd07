"""The protocol fronts beside bare echoes: `python -m bench.fronts`."""
