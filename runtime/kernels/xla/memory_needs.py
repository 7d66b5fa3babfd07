"""What the kernels of this room allocate.

`MEMORY_NEEDS` has the bound of each op that may need more than a small multiple of its inputs (see
`KernelDef.memory`); for all others `INPUT_MULTIPLES` has that multiple.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import protos as pb
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import MemoryNeed
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.linalg.memory_needs import MEMORY_NEEDS as LINALG_NEEDS
from runtime.kernels.memory_sizes import (
    elements,
    itemsize,
    numbers_in,
    shape_of,
    size_of,
    volume,
)
from runtime.kernels.xla.attributes import dimension_numbers_of, others
from runtime.kernels.xla.windows import padded_size

V = TensorValue
WIDE = 8  # bytes: an index, or the widest type in which is summed, but complex128


def _numbers(tensor: V, rank: int, default: int = 0) -> list[int]:
    found = numbers_in(tensor)
    return (found + [default] * rank)[:rank]


def _edges(tensor: V, rank: int) -> list[tuple[int, int]]:
    found = _numbers(tensor, 2 * rank)
    return list(zip(found[::2], found[1::2], strict=True))


def _padded(shape: Sequence[int], edges: list[tuple[int, int]], dilations: list[int]) -> int:
    """Return the elements of a padded tensor; a size that is refused counts as 0."""
    return volume(
        padded_size(size, low, high, max(dilation - 1, 0))
        for size, (low, high), dilation in zip(shape, edges, dilations, strict=False)
    )


def _windows_in(
    shape: Sequence[int],
    edges: list[tuple[int, int]],
    dilations: list[int],
    reaches: list[int],
    strides: list[int],
) -> int:
    counts = []
    for size, (low, high), dilation, reach, stride in zip(
        shape, edges, dilations, reaches, strides, strict=False
    ):
        whole = padded_size(size, low, high, max(dilation - 1, 0))
        counts.append((whole - reach) // max(stride, 1) + 1 if reach <= whole else 0)
    return volume(counts)


def _pad(value: V, fill: V, low: V, high: V, interior: V) -> int:
    shape = shape_of(value)
    rank = len(shape)
    edges = list(zip(_numbers(low, rank), _numbers(high, rank), strict=True))
    between = [each + 1 for each in _numbers(interior, rank)]
    return _padded(shape, edges, between) * itemsize(value)


def _reduce_window(
    value: V, init: V, sizes: V, strides: V, base: V, dilations: V, padding: V
) -> int:  # fmt: skip
    shape = shape_of(value)
    rank = len(shape)
    edges, base_dilations = _edges(padding, rank), _numbers(base, rank, 1)
    reaches = [
        (size - 1) * dilation + 1
        for size, dilation in zip(_numbers(sizes, rank, 1), _numbers(dilations, rank, 1),
                                  strict=True)
    ]  # fmt: skip
    whole = _padded(shape, edges, base_dilations) * (itemsize(value) + 1) + elements(value)
    windows = _windows_in(shape, edges, base_dilations, reaches, _numbers(strides, rank, 1))
    return whole + 5 * windows * itemsize(value)


def _select_and_scatter(value: V, sizes: V, strides: V, padding: V, source: V, init: V) -> int:
    shape = shape_of(value)
    rank = len(shape)
    whole = _padded(shape, _edges(padding, rank), [1] * rank)
    width = itemsize(value)
    return whole * (3 * width + 1) + size_of(value) + elements(source) * (6 * width + 4 * WIDE)


def _conv(
    lhs: V,
    rhs: V,
    strides: V,
    padding: V,
    lhs_dilation: V,
    rhs_dilation: V,
    groups: V,
    *,
    dimension_numbers: str,
    preferred_element_type: DataType | None = None,
) -> int:
    numbers = dimension_numbers_of(pb.ConvolutionDimensionNumbers, dimension_numbers)
    of_input, of_kernel = numbers.input_spatial_dimensions, numbers.kernel_spatial_dimensions
    shape, kernel = shape_of(lhs), shape_of(rhs)
    rank = max(len(shape) - 2, 0)
    spatial = [shape[each] for each in of_input if 0 <= each < len(shape)]
    edges, dilations = _edges(padding, rank), _numbers(lhs_dilation, rank, 1)
    reaches = [
        (kernel[each] - 1) * dilation + 1
        for each, dilation in zip(of_kernel, _numbers(rhs_dilation, rank, 1), strict=False)
        if 0 <= each < len(kernel)
    ]
    width = max(itemsize(lhs), itemsize(rhs), 2 * WIDE)
    rows = elements(lhs) // max(math.prod(spatial), 1)
    features = elements(rhs) // max(math.prod(kernel[each] for each in of_kernel
                                              if 0 <= each < len(kernel)), 1)  # fmt: skip
    windows = _windows_in(spatial, edges, dilations, reaches, _numbers(strides, rank, 1))
    batch = shape[numbers.input_batch_dimension] if 0 <= numbers.input_batch_dimension < len(
        shape
    ) else 1  # fmt: skip
    whole = rows * _padded(spatial, edges, dilations)
    results = batch * features * windows
    return width * (2 * elements(lhs, rhs) + whole + rows * windows + 4 * results)


def _plain_conv(
    lhs: V, rhs: V, strides: V, padding: V, lhs_dilation: V, rhs_dilation: V, groups: V,
    *, dimension_numbers: str,
) -> int:  # fmt: skip
    return _conv(
        lhs, rhs, strides, padding, lhs_dilation, rhs_dilation, groups,
        dimension_numbers=dimension_numbers,
    )  # fmt: skip


def _dot(lhs: V, rhs: V, *, dimension_numbers: str) -> int:
    numbers = dimension_numbers_of(pb.DotDimensionNumbers, dimension_numbers)
    first, second = shape_of(lhs), shape_of(rhs)
    free = others(len(second), numbers.rhs_batch_dimensions, numbers.rhs_contracting_dimensions)
    kept = others(len(first), numbers.lhs_contracting_dimensions)
    results = volume([*(first[each] for each in kept), *(second[each] for each in free)])
    width = max(itemsize(lhs), itemsize(rhs), WIDE)
    return width * (2 * elements(lhs, rhs) + 3 * results)


def _einsum(a: V, b: V, *, equation: str) -> int:
    # those of narrow types are copied to a wider one
    return 3 * LINALG_NEEDS["Einsum"](a, b, equation=equation) + WIDE * elements(a, b)


def _gather(operand: V, indices: V, sizes: V, *, dimension_numbers: str) -> int:
    numbers = dimension_numbers_of(pb.GatherDimensionNumbers, dimension_numbers)
    shape = shape_of(indices)
    vector = numbers.index_vector_dim
    count = elements(indices) // max(shape[vector], 1) if 0 <= vector < len(shape) else elements(
        indices
    )  # fmt: skip
    if 0 <= vector < len(shape) and not shape[vector]:
        count = volume(size for place, size in enumerate(shape) if place != vector)
    rank = len(shape_of(operand))
    window = volume(_numbers(sizes, rank))
    return 2 * count * window * itemsize(operand) + 4 * count * max(rank, 1) * WIDE


def _dynamic_slice(value: V, starts: V, sizes: V) -> int:
    return 0  # a view


def _dynamic_update(value: V, update: V, indices: V) -> int:
    return size_of(value)


def _scatter(operand: V, indices: V, updates: V) -> int:
    rank = max(len(shape_of(operand)), 1)
    width = itemsize(updates)
    starts = (elements(indices) + elements(updates)) * rank * WIDE * 5
    return size_of(operand) + starts + elements(updates) * (8 * WIDE + 6 * width)


def _reduce(value: V, init: V) -> int:
    return 5 * size_of(value) + 2 * size_of(init)


def _variadic_reduce(*values: V) -> int:
    return 5 * size_of(*values) + WIDE * elements(*values)


def _sort(value: V) -> int:
    return 4 * size_of(value) + 4 * WIDE * elements(value)


def _key_value_sort(keys: V, values: V) -> int:
    return _sort(keys) + _sort(values)


def _variadic_sort(*values: V) -> int:
    *given, _ = values
    return 6 * size_of(*given) + 20 * WIDE * elements(*given[:1])


def _reduce_precision(value: V) -> int:
    return 6 * size_of(value) + 12 * elements(value)


MEMORY_NEEDS: dict[str, MemoryNeed] = {
    "XlaConv": _plain_conv,
    "XlaConvV2": _conv,
    "XlaDot": _dot,
    "XlaDotV2": _dot,
    "XlaDynamicSlice": _dynamic_slice,
    "XlaDynamicUpdateSlice": _dynamic_update,
    "XlaEinsum": _einsum,
    "XlaGather": _gather,
    "XlaKeyValueSort": _key_value_sort,
    "XlaPad": _pad,
    "XlaReduce": _reduce,
    "XlaReducePrecision": _reduce_precision,
    "XlaReduceWindow": _reduce_window,
    "XlaScatter": _scatter,
    "XlaSelectAndScatter": _select_and_scatter,
    "XlaSort": _sort,
    "XlaVariadicReduce": _variadic_reduce,
    "XlaVariadicReduceV2": _variadic_reduce,
    "XlaVariadicSort": _variadic_sort,
}
INPUT_MULTIPLES: dict[str, int] = {
    "XlaBroadcastHelper": 0,
    "XlaIf": 0,
    "XlaOptimizationBarrier": 0,
    "XlaReplicaId": 0,
    "XlaSharding": 0,
    "XlaSpmdShardToFullShape": 0,
    "XlaWhile": 0,
}
