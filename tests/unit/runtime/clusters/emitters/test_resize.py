"""Resized images of a model are those of the numpy kernels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.clusters.backend import CompiledModel, UncheckedRunError
from runtime.clusters.dimensions import InexpressibleError, SymbolicSize, symbol
from runtime.clusters.emission import Emission
from runtime.clusters.emit_cluster import EmittedCluster, RefusedError
from runtime.clusters.emitters import EMITTERS
from runtime.clusters.model_proto import serialize
from runtime.clusters.values import Value
from runtime.framework.dtypes import DataType
from runtime.graph.graph import Graph as RuntimeGraph
from runtime.graph.graph_constructor import extend_graph
from tests.conformance.case import Graph
from tests.unit.runtime.clusters.emitted import Emitted, assert_close, emitted
from tests.unit.runtime.clusters.recorded_ops import check_recorded

MODES = ({}, {"align_corners": True}, {"half_pixel_centers": True})


def values(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("op", "at_least"), [("ResizeBilinear", 27), ("ResizeNearestNeighbor", 24)]
)
def test_recorded_cases(op: str, at_least: int) -> None:
    assert len(check_recorded(op)) >= at_least


def resized(op: str, image: np.ndarray, sizes: tuple[int, int], **mode: bool) -> Emitted:
    graph = Graph()
    x = graph.placeholder(image.dtype.name, "x")
    graph.add(op, x, np.array(sizes, np.int32), name="y", **mode)
    return emitted(graph, {"x:0": image}, ["y:0"])


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["ResizeBilinear", "ResizeNearestNeighbor"]),
    st.sampled_from(MODES),
    *(st.integers(1, 40) for _ in range(4)),
)
def test_any_sizes(
    op: str, mode: dict[str, bool], height: int, width: int, rows: int, columns: int
) -> None:
    try:
        made = resized(op, values(2, height, width, 3), (rows, columns), **mode)
    except RefusedError:
        return  # the engine would take other pixels
    made.check(0 if op == "ResizeNearestNeighbor" else 1e-5)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [(32, 64), (48, 80), (224, 224), (7, 5)])
def test_usual_sizes_are_written(mode: dict[str, bool], size: tuple[int, int]) -> None:
    resized("ResizeNearestNeighbor", values(1, 16, 16, 2), size, **mode).check(0)
    resized("ResizeBilinear", values(1, 16, 16, 2), size, **mode).check()


def test_bytes_become_floats() -> None:
    image = np.arange(48, dtype=np.uint8).reshape(1, 4, 4, 3)
    resized("ResizeBilinear", image, (6, 6), half_pixel_centers=True).check()
    resized("ResizeBilinear", image, (4, 4)).check()


def test_infinite_pixels_are_left_to_numpy() -> None:
    image = values(1, 4, 4, 3)
    image[0, 1, 1, 0] = np.inf
    with pytest.raises(UncheckedRunError, match="not finite"):
        resized("ResizeBilinear", image, (6, 6)).run()


def enlarged(op: str, factor: int, **mode: bool) -> EmittedCluster:
    """Return an enlargement of images of unknown sizes, as Keras's UpSampling2D writes it."""
    graph = Graph()
    x, size = graph.placeholder("float32", "x"), graph.placeholder("int32", "size")
    graph.add(op, x, size, name="y", **mode)
    node = extend_graph(RuntimeGraph(), graph.graph_def).nodes["y"]
    emission = Emission()
    images = emission.input(DataType.FLOAT, (symbol("n"), symbol("h"), symbol("w"), 3))
    wanted = emission.sizes([SymbolicSize(factor, (name,)) for name in "hw"], DataType.INT32)
    made = EMITTERS[op].emit(emission, node, [images, wanted])
    assert isinstance(made, Value)
    assert made.shape[1:3] == wanted.sizes
    return EmittedCluster(emission, (emission.as_is(made),))


@pytest.mark.parametrize("op", ["ResizeBilinear", "ResizeNearestNeighbor"])
@pytest.mark.parametrize("mode", MODES[::2])
def test_unknown_sizes_are_doubled(op: str, mode: dict[str, bool]) -> None:
    model = CompiledModel(serialize(enlarged(op, 2, **mode), is_baked=True), threads=1)
    for height, width in ((5, 6), (16, 1)):
        image = values(2, height, width, 3)
        known = resized(op, image, (2 * height, 2 * width), **mode)
        assert_close(model.run([image])[0], known.expected[0])


def test_unknown_sizes_that_rounding_could_move_are_refused() -> None:
    with pytest.raises(InexpressibleError, match="pixels to"):
        enlarged("ResizeNearestNeighbor", 3, half_pixel_centers=True)
    with pytest.raises(InexpressibleError, match="corners"):
        enlarged("ResizeNearestNeighbor", 2, align_corners=True)
