"""Comparisons, selection and casts in a model give what the numpy kernels give."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.clusters.emit_cluster import RefusedError
from runtime.clusters.emitters import EMITTERS
from runtime.framework.dtypes import DataType
from tests.conformance.case import Graph
from tests.unit.runtime.clusters.emitted import emitted
from tests.unit.runtime.clusters.layouts import numbers

CASTS = sorted(EMITTERS["Cast"].types["SrcT"])
REAL = [-np.inf, -3e9, -300, -1.7, -1, -0.5, -0.0, 0, 0.5, 1, 1.5, 2.5, 300, 70000, 3e9, np.inf]
WHOLE = [-(1 << 40), -(1 << 31), -300, -129, -1, 0, 1, 2, 127, 128, 255, 256, 65536, 1 << 31]


@pytest.mark.parametrize("to", CASTS)
@pytest.mark.parametrize("source", CASTS)
def test_casts_of_numbers_in_and_out_of_range(source: DataType, to: DataType) -> None:
    graph = Graph()
    graph.add("Cast", graph.placeholder(source, "x"), DstT=to, name="y")
    is_real = source.numpy.kind == "f"
    with np.errstate(all="ignore"):
        x = np.array([*REAL, np.nan] if is_real else WHOLE).astype(source.numpy)
        emitted(graph, {"x:0": np.tile(x, 20)}, ["y:0"]).check()


@pytest.mark.parametrize("dtype", sorted(EMITTERS["SelectV2"].types["T"]))
def test_selection_broadcasts_all_three(dtype: DataType) -> None:
    graph = Graph()
    names = {"condition": DataType.BOOL, "x": dtype, "y": dtype}
    graph.add("SelectV2", *(graph.placeholder(names[name], name) for name in names), name="z")
    condition = np.array([[True], [False]])
    x, y = np.array([1, 2, 3]).astype(dtype.numpy), np.array([[0, 5, 0]]).astype(dtype.numpy)
    feeds = {"condition:0": condition, "x:0": x, "y:0": y}
    emitted(graph, feeds, ["z:0"], shapes=[each.shape for each in feeds.values()]).check()


@pytest.mark.parametrize("condition", [True, [True, False], [[True, True, False]] * 2])
def test_selection_by_a_scalar_by_rows_and_by_elements(condition: object) -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    given = graph.placeholder("bool", "condition")
    graph.add("Select", given, x, graph.add("Neg", x)[0], name="z")
    array = np.array(condition)
    feeds = {"condition:0": array, "x:0": numbers(2, 3)}
    emitted(graph, feeds, ["z:0"], shapes=[array.shape, (2, 3)]).check()


def test_selection_does_not_spread_nan() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    graph.add("SelectV2", graph.add("IsNan", x)[0], np.float32(0), x, name="y")
    emitted(graph, {"x:0": np.array([np.nan, 1, np.inf], np.float32)}, ["y:0"]).check()


def test_selection_from_tensors_that_may_differ_in_shape_is_declined() -> None:
    graph = Graph()
    x, y = graph.placeholder("float32", "x"), graph.placeholder("float32", "y")
    graph.add("Select", np.array(True), x, y, name="z")
    feeds = {"x:0": numbers(3, 4), "y:0": numbers(3, 4)}
    with pytest.raises(RefusedError, match="may differ in shape"):
        emitted(graph, feeds, ["z:0"], shapes=[(3, 4), (3, 1)])
