"""Conformance cases of the kernels in runtime/kernels/nn."""
