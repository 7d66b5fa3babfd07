"""Convolutions of images with few channels need no Transpose, and give the same in both forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.clusters.bounds import MAX_SIZE
from runtime.clusters.dimensions import Shape, symbol
from runtime.clusters.emission import Emission, live_operations
from runtime.clusters.patterns import PATTERNS, recognize
from runtime.clusters.rows import row_inputs
from runtime.clusters.values import Layout, Value
from runtime.framework.dtypes import DataType
from tests.conformance.case import Graph
from tests.unit.runtime.clusters.emitted import Emitted, assert_close, emitted
from tests.unit.runtime.clusters.patterns.rewritten import apply, kinds_after, number, values

FIRST = Layout.CHANNELS_FIRST
X = values(2, 6, 7, 3)


def convolution(emission: Emission, image: Value, weights: Value, **attributes: object) -> Value:
    """A convolution of `image` `[b, h, w, c]`; the number of rows and columns stays."""
    first = emission.channels_first(image)
    shape = (*image.shape[:3], weights.shape[0])
    *_, high, wide = weights.shape
    assert isinstance(high, int)
    assert isinstance(wide, int)
    around = [high // 2, wide // 2] * 2
    given = {"kernel_shape": [high, wide], "pads": around, **attributes}
    return emission.op("Conv", [first, weights], image.dtype, shape, layout=FIRST, **given)


def only_convolution(emission: Emission, x: Value, weights: list[Value]) -> Value:
    return convolution(emission, x, weights[0])


@pytest.mark.parametrize("channels", [2, 3, 4, 7])
def test_few_channels_are_columns(channels: int) -> None:
    found = kinds_after(only_convolution, values(2, 6, 7, channels), values(5, channels, 3, 3))
    assert found == ["Reshape", "Conv"]


def test_more_channels_are_moved() -> None:
    found = kinds_after(only_convolution, values(2, 6, 7, 8), values(5, 8, 3, 3))
    assert found == ["Transpose", "Conv"]


def test_one_channel_needs_no_transpose_anyway() -> None:
    assert kinds_after(only_convolution, values(2, 6, 7, 1), values(5, 1, 3, 3)) == [
        "Reshape",
        "Conv",
    ]


def test_groups_are_moved() -> None:
    def build(emission: Emission, x: Value, weights: list[Value]) -> Value:
        return convolution(emission, x, weights[0], group=2)

    found = kinds_after(build, values(2, 6, 7, 4), values(6, 2, 3, 3))
    assert found == ["Transpose", "Conv"]


@pytest.mark.parametrize(
    ("dilations", "first"), [([2, 1], "Reshape"), ([1, 2], "Transpose"), ([1, 1], "Reshape")]
)
def test_columns_of_one_window_are_beside_each_other(dilations: list[int], first: str) -> None:
    def build(emission: Emission, x: Value, weights: list[Value]) -> Value:
        around = dilations * 2
        return convolution(emission, x, weights[0], dilations=dilations, pads=around)

    assert kinds_after(build, X, values(5, 3, 3, 3)) == [first, "Conv"]


def test_numbers_and_vectors_before_it_are_for_columns_too() -> None:
    """As a Rescaling and a Normalization of an image."""

    def build(emission: Emission, x: Value, weights: list[Value]) -> Value:
        scaled = apply(emission, "Div", x, number(emission, 127.5))
        centred = apply(emission, "Sub", scaled, emission.constant(np.ones(1, np.float32)))
        moved = apply(emission, "Sub", centred, weights[1])
        wider = apply(emission, "Div", moved, weights[2])
        clipped = apply(emission, "Clip", wider, number(emission, -1), number(emission, 1))
        return convolution(emission, clipped, weights[0])

    found = kinds_after(build, X, values(5, 3, 3, 3), values(1, 1, 1, 3), abs(values(3)) + 1)
    assert found == ["Reshape", "Div", "Sub", "Sub", "Div", "Clip", "Conv"]


@pytest.mark.parametrize("shape", [(6, 7, 3), (1, 6, 1, 1), (7, 1), (1, 1, 1, 1), (6, 1, 3)])
def test_known_images_before_it(shape: tuple[int, ...]) -> None:
    def build(emission: Emission, x: Value, weights: list[Value]) -> Value:
        return convolution(emission, apply(emission, "Sub", x, weights[1]), weights[0])

    assert kinds_after(build, X, values(5, 3, 3, 3), values(*shape)) == ["Reshape", "Sub", "Conv"]


def test_bytes_become_numbers_as_columns() -> None:
    def build(emission: Emission, x: Value, weights: list[Value]) -> Value:
        image = emission.op("Cast", [x], DataType.FLOAT, x.shape, to=1)
        return convolution(emission, image, weights[0])

    image = np.arange(2 * 6 * 7 * 3, dtype=np.uint8).reshape(2, 6, 7, 3)
    assert kinds_after(build, image, values(5, 3, 3, 3)) == ["Reshape", "Cast", "Conv"]


def test_an_image_that_something_else_reads_is_moved() -> None:
    def build(emission: Emission, x: Value, weights: list[Value]) -> list[Value]:
        first = convolution(emission, x, weights[0])
        return [first, convolution(emission, x, weights[1])]

    found = kinds_after(build, X, values(5, 3, 3, 3), values(4, 3, 1, 1))
    assert found == ["Transpose", "Conv", "Conv"]


def test_weights_that_something_else_reads_stay() -> None:
    def build(emission: Emission, x: Value, weights: list[Value]) -> Value:
        first = convolution(emission, x, weights[0])
        again = emission.op("Conv", [first, weights[0]], x.dtype, first.shape, layout=FIRST)
        return emission.as_is(again)

    found = kinds_after(build, X, values(3, 3, 1, 1))
    assert found == ["Reshape", "Conv", "Conv", "Transpose"]


def columns_of(shape: Shape, **attributes: object) -> list[str]:
    """Return what a convolution 3 by 3 of an image becomes, which is not run."""
    emission = Emission()
    image = emission.input(DataType.FLOAT, shape)
    weights = emission.constant(values(5, 3, 3, 3))
    scaled = apply(emission, "Mul", image, emission.constant(values(3)))
    made = convolution(emission, scaled, weights, **attributes)
    outputs = recognize(emission, [made])
    return [each.op_type for each in live_operations(emission.operations, outputs)]


@pytest.mark.parametrize(
    "attributes",
    [{"strides": [1, MAX_SIZE]}, {"pads": [0, MAX_SIZE, 0, 0]}, {"pads": [0, 0, 0, MAX_SIZE]}],
)
def test_what_an_engine_could_not_count_is_moved(attributes: dict[str, object]) -> None:
    assert "Transpose" in columns_of((symbol("batch"), 6, 7, 3), **attributes)


def test_a_vector_is_not_repeated_for_a_row_of_any_length() -> None:
    assert "Transpose" in columns_of((symbol("batch"), 2, 1 << 20, 3))


def convolved(
    image: np.ndarray, filter: np.ndarray, shape: Shape | None = None, **attrs: object
) -> Emitted:
    graph = Graph()
    x, f = graph.placeholder("float32", "x"), graph.placeholder("float32", "f")
    graph.add("Conv2D", x, f, name="y", **attrs)
    return emitted(
        graph,
        {"x:0": image},
        ["y:0"],
        sources={"f:0": filter},
        shapes=None if shape is None else [shape],
        patterns=PATTERNS,
    )


@pytest.mark.parametrize(
    ("high", "wide", "first"),
    [("h", 7, "Reshape"), (6, "w", "Reshape"), ("h", "w", "Transpose")],
)
def test_one_size_that_only_a_run_knows(high: int | str, wide: int | str, first: str) -> None:
    sizes = [symbol(each) if isinstance(each, str) else each for each in (high, wide)]
    made = convolved(
        X,
        values(3, 3, 3, 4),
        (symbol("batch"), *sizes, 3),
        strides=[1, 1, 1, 1],
        padding="SAME",
    )
    assert made.kinds()[:2] == [first, "Conv"]
    made.check()


def test_a_vector_needs_the_number_of_columns() -> None:
    assert columns_of((symbol("batch"), symbol("h"), 7, 3)) == ["Reshape", "Mul", "Conv"]
    assert columns_of((symbol("batch"), 6, symbol("w"), 3)) == ["Transpose", "Mul", "Conv"]


def test_images_are_still_rows_of_a_batch() -> None:
    made = convolved(X, values(3, 3, 3, 4), strides=[1, 2, 2, 1], padding="SAME")
    assert "Reshape" in made.kinds()
    assert row_inputs(made.cluster) == (True,)


def network(is_padded: bool) -> Emitted:
    """The first layers of an exported model: rescaled, padded, convolved, normalized, clipped."""
    graph = Graph()
    x, f = graph.placeholder("float32", "x"), graph.placeholder("float32", "f")
    scaled = graph.add("Mul", x, np.float32(1 / 127.5))[0]
    image = graph.add("Sub", scaled, np.float32(1))[0]
    if is_padded:
        image = graph.add("Pad", image, np.int32([[0, 0], [1, 2], [3, 1], [0, 0]]))[0]
    padding = "VALID" if is_padded else "SAME"
    made = graph.add("Conv2D", image, f, strides=[1, 2, 2, 1], padding=padding)[0]
    vectors = [abs(values(8, seed=seed)) + 0.5 for seed in range(4)]
    normal = graph.add("FusedBatchNormV3", made, *vectors, is_training=False)[0]
    graph.add("Relu6", normal, name="y")
    feeds = {"x:0": np.random.default_rng(7).uniform(0, 255, (3, 9, 11, 3)).astype(np.float32)}
    sources = {"f:0": values(3, 4, 3, 8)}
    return emitted(graph, feeds, ["y:0"], sources=sources, patterns=PATTERNS)


@pytest.mark.parametrize("is_padded", [False, True])
def test_what_is_around_a_convolution_is_taken_in(is_padded: bool) -> None:
    made = network(is_padded)
    kinds = made.kinds()
    assert kinds[:4] == ["Reshape", "Mul", "Sub", "Conv"]
    assert not {"BatchNormalization", "Pad"} & set(kinds)
    assert kinds.count("Transpose") == 1  # of the result
    made.check()


sizes = st.integers(1, 9)
around = st.tuples(*[st.integers(0, 3)] * 4)


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(st.sampled_from([1, 3]), sizes, sizes, st.integers(1, 7), st.integers(1, 20)),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.tuples(st.integers(1, 9), st.integers(1, 9)),
    st.one_of(st.sampled_from(["SAME", "VALID"]), around),
    st.booleans(),
)
def test_sums_are_the_same(
    image: tuple[int, int, int, int, int],
    window: tuple[int, int],
    strides: tuple[int, int],
    padding: str | tuple[int, int, int, int],
    is_symbolic: bool,
) -> None:
    batch, high, wide, channels, outer = image
    if padding != "SAME":
        high, wide = max(high, window[0]), max(wide, window[1])
    attrs: dict[str, object] = {"padding": padding}
    if not isinstance(padding, str):
        attrs = {"padding": "EXPLICIT", "explicit_paddings": [0, 0, *padding, 0, 0]}
    x = values(batch, high, wide, channels)
    shape = (symbol("batch") if is_symbolic else batch, *x.shape[1:])
    filter = values(*window, channels, outer)
    made = convolved(x, filter, shape, strides=[1, *strides, 1], **attrs)
    made.check()
    if is_symbolic:
        assert_close(made.run(feeds={"x:0": x[:1]})[0], made.expected[0][:1])
