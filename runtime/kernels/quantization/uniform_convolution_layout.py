"""How a uniformly quantized convolution reads its arrays: orders, sizes, paddings and groups.

TF: tensorflow/core/util/quantization/uniform_quant_ops_params.cc
(ValidateOrFillParamsAndValidateShape, CalculateOutputShape)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from google.protobuf.message import DecodeError

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.shapes import shape_text

Ints = Sequence[int]


@dataclasses.dataclass(frozen=True, slots=True)
class Layout:
    """A convolution of known shapes.

    Orders are permutations to `[batch, features, spatial…]`, of the weights to `[output features,
    input features, spatial…]`; all other tuples have one element for each spatial dimension.
    """

    lhs_order: tuple[int, ...]
    rhs_order: tuple[int, ...]
    output_order: tuple[int, ...]
    strides: tuple[int, ...]
    lhs_dilation: tuple[int, ...]
    rhs_dilation: tuple[int, ...]
    paddings: tuple[tuple[int, int], ...]
    kernel_sizes: tuple[int, ...]
    padded_sizes: tuple[int, ...]  # of the dilated and padded lhs
    output_sizes: tuple[int, ...]
    output_shape: tuple[int, ...]  # in the output's own order
    output_features: int
    batch_groups: int
    feature_groups: int


def layout_of(
    lhs_shape: tuple[int, ...],
    rhs_shape: tuple[int, ...],
    *,
    window_strides: Ints,
    padding: str,
    explicit_padding: Ints,
    lhs_dilation: Ints,
    rhs_dilation: Ints,
    batch_group_count: int,
    feature_group_count: int,
    dimension_numbers: str | bytes,
) -> Layout:
    """Return the layout of a convolution with these attributes.

    Raises InvalidArgumentError if an attribute is invalid or does not fit the shapes.
    """
    _check_padding_attributes(padding, explicit_padding)
    numbers = _parsed(dimension_numbers)
    rank = _check_ranks(lhs_shape, rhs_shape)
    strides, lhs_rates, rhs_rates = (
        _for_each_dimension(name, each, rank - 2)
        for name, each in (
            ("window_strides", window_strides),
            ("lhs_dilation", lhs_dilation),
            ("rhs_dilation", rhs_dilation),
        )
    )
    lhs_order, rhs_order, output_order = _orders(numbers, rank)
    lhs = [lhs_shape[axis] for axis in lhs_order]
    rhs = [rhs_shape[axis] for axis in rhs_order]
    _check_features(lhs[1], rhs, feature_group_count)
    _check_batches(lhs[0], rhs[0], batch_group_count)
    dilated = [_dilated(size, rate) for size, rate in zip(lhs[2:], lhs_rates, strict=True)]
    windows = [_dilated(size, rate) for size, rate in zip(rhs[2:], rhs_rates, strict=True)]
    paddings = _paddings(padding, explicit_padding, dilated, windows, strides)
    padded = [size + sum(pair) for size, pair in zip(dilated, paddings, strict=True)]
    counts = _output_sizes(padded, windows, strides)
    ordered = (lhs[0] // batch_group_count, rhs[0], *counts)
    return Layout(
        lhs_order=lhs_order,
        rhs_order=rhs_order,
        output_order=output_order,
        strides=strides,
        lhs_dilation=lhs_rates,
        rhs_dilation=rhs_rates,
        paddings=paddings,
        kernel_sizes=tuple(rhs[2:]),
        padded_sizes=tuple(padded),
        output_sizes=counts,
        output_shape=tuple(ordered[output_order.index(axis)] for axis in range(rank)),
        output_features=rhs[0],
        batch_groups=batch_group_count,
        feature_groups=feature_group_count,
    )


def _check_padding_attributes(padding: str, explicit_padding: Ints) -> None:
    if padding not in ("EXPLICIT", "SAME", "VALID"):
        raise InvalidArgumentError(
            f"padding Attr must be one of [EXPLICIT | SAME | VALID], but given: {padding}"
        )
    if padding != "EXPLICIT" and explicit_padding:
        raise InvalidArgumentError(
            "If padding Attr is not 'EXPLICIT', explicit_padding Attr must be empty. Given padding "
            f"{padding} and explicit_padding of size {len(explicit_padding)}"
        )


def _parsed(
    dimension_numbers: str | bytes,
) -> pb.UniformQuantizedConvolutionDimensionNumbersAttr:
    data = (
        dimension_numbers.encode("utf-8", "surrogateescape")
        if isinstance(dimension_numbers, str)
        else dimension_numbers
    )
    try:
        return pb.UniformQuantizedConvolutionDimensionNumbersAttr.FromString(data)
    except DecodeError:
        raise InvalidArgumentError("Error parsing convolution dimension numbers.") from None


def _check_ranks(lhs_shape: tuple[int, ...], rhs_shape: tuple[int, ...]) -> int:
    if len(lhs_shape) != len(rhs_shape):
        raise InvalidArgumentError(
            "lhs and rhs must have same dims. Given lhs and rhs of shapes: "
            f"{shape_text(lhs_shape)}{shape_text(rhs_shape)}"
        )
    if len(lhs_shape) <= 2:
        raise InvalidArgumentError(
            f"lhs and rhs shape dims must be at least 3. Given: {len(lhs_shape)}"
        )
    return len(lhs_shape)


def _for_each_dimension(name: str, values: Ints, count: int) -> tuple[int, ...]:
    """Return the attribute `name` with a value for each spatial dimension; 1 if it is empty."""
    if not values:
        return (1,) * count
    if len(values) != count:
        raise InvalidArgumentError(f"Size of {name} Attr must be dims - 2.")
    if min(values) < 1:
        given = ", ".join(map(str, values))
        raise InvalidArgumentError(f"All elements of {name} must be >= 1. Given {given}")
    return tuple(values)


def _orders(
    numbers: pb.UniformQuantizedConvolutionDimensionNumbersAttr, rank: int
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return the orders of lhs, weights and output."""
    if not numbers.input_spatial_dimensions:
        plain = tuple(range(rank))
        return plain, plain, plain
    orders = (
        (
            numbers.input_batch_dimension,
            numbers.input_feature_dimension,
            *numbers.input_spatial_dimensions,
        ),
        (
            numbers.kernel_output_feature_dimension,
            numbers.kernel_input_feature_dimension,
            *numbers.kernel_spatial_dimensions,
        ),
        (
            numbers.output_batch_dimension,
            numbers.output_feature_dimension,
            *numbers.output_spatial_dimensions,
        ),
    )
    for order in orders:
        _check_order(order, rank)
    return orders


def _check_order(order: tuple[int, ...], rank: int) -> None:
    """Raise InvalidArgumentError unless `order` is a permutation of range(rank)."""
    if len(order) != rank:
        raise InvalidArgumentError(
            f"Spatial dimensions size must be rank - 2. Given rank {rank} and spatial dimensions "
            f"size {len(order) - 2}"
        )
    for axis in order:
        if not 0 <= axis < rank:
            raise InvalidArgumentError(
                f"Each dimension number must be in region [0, rank). Given rank {rank} and "
                f"dimension number value {axis}"
            )
    if len(set(order)) != rank:
        raise InvalidArgumentError(
            f"Dimension numbers must be different, but given {', '.join(map(str, order))}"
        )


def _check_features(lhs_features: int, rhs: Sequence[int], groups: int) -> None:
    outputs, inputs = rhs[0], rhs[1]
    if groups <= 0:
        raise InvalidArgumentError(
            f"feature_group_count must be a positive integer, given: {groups}"
        )
    if lhs_features % groups:
        raise InvalidArgumentError(
            "feature_group_count must divide lhs feature dimension size, but "
            f"{groups} does not divide {lhs_features}"
        )
    if not inputs or lhs_features % inputs:
        raise InvalidArgumentError(
            "rhs input feature dimension must divide lhs feature dimension size, but "
            f"{inputs} does not divide {lhs_features}"
        )
    if lhs_features // groups != inputs:
        raise InvalidArgumentError(
            "lhs feature dimension size divided by feature_group_count must equal the rhs input "
            f"feature dimension size, but {lhs_features} / {groups} != {inputs}"
        )
    if outputs % groups:
        raise InvalidArgumentError(
            "rhs output dimension size must be a multiple of feature_group_count, but "
            f"{outputs} is not a multiple of {groups}"
        )


def _check_batches(examples: int, outputs: int, groups: int) -> None:
    if groups <= 0:
        raise InvalidArgumentError(
            f"batch_group_count Attr must be a positive integer. Given: {groups}"
        )
    if examples % groups:
        raise InvalidArgumentError(
            "batch_group_count must divide lhs batch dimension size, but "
            f"{groups} does not divide {examples}"
        )
    if outputs % groups:
        raise InvalidArgumentError(
            "rhs output dimension size must be a multiple of batch_group_count, but "
            f"{outputs} is not a multiple of {groups}"
        )


def _dilated(size: int, rate: int) -> int:
    return (size - 1) * rate + 1 if size else 0


def _paddings(
    padding: str, given: Ints, sizes: Ints, windows: Ints, strides: Ints
) -> tuple[tuple[int, int], ...]:
    """Return (before, after) of each spatial dimension; `sizes` and `windows` are dilated."""
    count = len(sizes)
    if padding == "VALID":
        return ((0, 0),) * count
    if padding == "SAME":
        totals = [
            max((-(-size // stride) - 1) * stride + window - size, 0)
            for size, window, stride in zip(sizes, windows, strides, strict=True)
        ]
        return tuple((total // 2, total - total // 2) for total in totals)
    if len(given) != 2 * count:
        raise InvalidArgumentError(
            "Size of explicit_padding Attr must be 2 * (rank - 2). Given rank "
            f"{count + 2} and explicit_padding of size {len(given)}"
        )
    if min(given) < 0:
        raise InvalidArgumentError(
            f"All explicit_padding elems must be >= 0, Given {', '.join(map(str, given))}"
        )
    return tuple((given[2 * each], given[2 * each + 1]) for each in range(count))


def _output_sizes(padded: Ints, windows: Ints, strides: Ints) -> tuple[int, ...]:
    """Return the output's sizes; the division rounds towards zero, as in TensorFlow."""
    counts = tuple(
        int((size - window + stride) / stride)
        for size, window, stride in zip(padded, windows, strides, strict=True)
    )
    for count in counts:
        if count < 0:
            raise InvalidArgumentError(f"Expected a non-negative size, got {count}")
    return counts
