"""Conformance cases of the kernels in runtime/kernels/data."""
