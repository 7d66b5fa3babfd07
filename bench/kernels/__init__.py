"""Kernels on inputs of one realistic size each: `python -m bench.kernels`."""
