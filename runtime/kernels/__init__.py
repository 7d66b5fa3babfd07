"""Kernels, one file an op family; `KERNEL_MODULES` is the list of them.

Each module ends with a table `KERNELS` of `KernelDef` rows. To add a family: a module here, its
name below, a case table under tests/conformance/cases/.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from runtime.framework.op_kernel import KernelDef

KERNEL_MODULES: tuple[str, ...] = (
    # kept in alphabetical order
    "activations",
    "assertions",
    "bias",
    "casts",
    "checkpoint",
    "comparison",
    "concat_split",
    "control_flow",
    "convolution",
    "convolution_3d",
    "convolution_gradients",
    "cumulative",
    "depthwise_convolution_gradients",
    "dilation",
    "dynamic_partition",
    "einsum",
    "elementwise_arithmetic",
    "elementwise_unary",
    "error_functions",
    "example_parsing",
    "fill_and_range",
    "gather",
    "histograms",
    "identity",
    "lookup_table_handles",
    "lookup_tables",
    "matmul",
    "normalization",
    "number_text",
    "padding",
    "patches",
    "pooling",
    "pooling_argmax",
    "pooling_gradients",
    "ragged_to_tensor",
    "reductions",
    "scatter",
    "shapes",
    "slicing",
    "sorting",
    "space_depth",
    "sparse_to_dense",
    "string_hashing",
    "string_regex",
    "string_split",
    "strings",
    "transpose",
    "unique",
)


def kernel_defs() -> Iterator[KernelDef]:
    """Every row of every table, in order."""
    for name in KERNEL_MODULES:
        yield from importlib.import_module(f"runtime.kernels.{name}").KERNELS
