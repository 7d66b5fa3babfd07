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
    "activation_gradients",
    "activations",
    "assertions",
    "base64_text",
    "bias",
    "bitwise",
    "casts",
    "checkpoint",
    "clock",
    "combined_non_max_suppression",
    "comparison",
    "complex_numbers",
    "concat_split",
    "control_flow",
    "convolution",
    "convolution_3d",
    "convolution_gradients",
    "csv_decoding",
    "cumulative",
    "depthwise_convolution_gradients",
    "dilation",
    "dynamic_partition",
    "einsum",
    "elementwise_arithmetic",
    "elementwise_gradients",
    "elementwise_unary",
    "error_functions",
    "example_parsing",
    "fake_quant",
    "files",
    "fill_and_range",
    "gather",
    "histograms",
    "identity",
    "image_color",
    "image_resize",
    "in_top_k",
    "lookup_table_handles",
    "lookup_tables",
    "losses",
    "matmul",
    "non_max_suppression",
    "normalization",
    "normalization_gradients",
    "number_text",
    "optionals",
    "padding",
    "patches",
    "pooling",
    "pooling_argmax",
    "pooling_gradients",
    "quantization",
    "quantize_and_dequantize",
    "queues",
    "ragged",
    "ragged_to_tensor",
    "ragged_variant",
    "record_decoding",
    "reductions",
    "ref_variables",
    "resource_variables",
    "scatter",
    "segment_math",
    "sequence_example_parsing",
    "sets",
    "shapes",
    "slicing",
    "sorting",
    "space_depth",
    "sparse_segments",
    "sparse_to_dense",
    "string_hashing",
    "string_reductions",
    "string_regex",
    "string_split",
    "strings",
    "substrings",
    "tensor_list_slices",
    "tensor_lists",
    "tensor_serialization",
    "transpose",
    "unicode_text",
    "unique",
)


def kernel_defs() -> Iterator[KernelDef]:
    """Every row of every table, in order."""
    for name in KERNEL_MODULES:
        yield from importlib.import_module(f"runtime.kernels.{name}").KERNELS
