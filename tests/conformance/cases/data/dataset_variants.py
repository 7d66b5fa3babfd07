"""Dataset ops with a newer version, and those that only TensorFlow's rewrites and readers make."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.framework.attr_value import NameAttrList
from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Step
from tests.conformance.cases.data.dataset_snapshots import identity
from tests.conformance.cases.data.datasets import Build, DatasetGraph, iterated, with_function

BOOL, I64, VARIANT = DataType.BOOL, DataType.INT64, DataType.VARIANT


def _checked(op: str, *expected: str) -> Build:
    """Build a mapped range with an op in between that asserts the next or previous datasets."""

    def build(g: DatasetGraph) -> Any:
        wanted = np.empty(len(expected), object)
        wanted[:] = [each.encode() for each in expected]
        watched = g.data(op, g.range(6), wanted)
        doubled = g.function("doubled", "Mul", 2, I64)
        return g.as_it_is(g.data("MapDataset", watched, [g.long(2)], f=doubled))

    return build


def _padded(g: DatasetGraph) -> Any:
    rows = g.data("BatchDatasetV2", g.range(5), g.long(2), np.bool_(False))
    padded = g.add(
        "PaddedBatchDataset", rows, g.long(2), [np.array([3], np.int64)], [np.int64(-1)],
        Toutput_types=(I64,), output_shapes=g.shapes,
    )[0]  # fmt: skip
    return g.as_it_is(padded)


def _filtered(g: DatasetGraph) -> Any:
    predicate = g.function("larger", "Greater", 2, BOOL)
    filtered = g.data(
        "ParallelFilterDataset", g.range(6), [g.long(2)], g.long(2), predicate=predicate,
        deterministic="true",
    )  # fmt: skip
    return g.as_it_is(filtered)


def _scanned(g: DatasetGraph) -> Any:
    add = g.function("scan_add", "AddV2", 2, I64)
    definition = g.graph_def.library.function[-1]
    definition.signature.output_arg.add(name="again", type=int(I64))
    definition.ret["again"] = definition.ret["y"]
    return g.data("ExperimentalScanDataset", g.range(4), [g.long(10)], [], f=add)


def _sharded(op: str) -> Build:
    """Build a shard of a range: by elements, because the source has no files."""
    return lambda g: g.data(op, g.range(6), g.long(1), g.long(0))


def _chosen(op: str) -> Build:
    return lambda g: g.data(op, [g.range(3), g.range(3)], num_experiments=2)


def _chosen_of(kinds: str) -> Build:
    """Build ChooseFastestDataset of datasets of n, unknown (?) or infinitely many (*) elements."""

    def made(g: DatasetGraph, kind: str) -> Any:
        if kind == "*":
            return g.data("RepeatDataset", g.range(1), g.long(-1))
        if kind == "?":
            predicate = g.function("less", "Less", 2, BOOL)
            return g.data("FilterDataset", g.range(3), [g.long(9)], predicate=predicate)
        return g.range(int(kind))

    def build(g: DatasetGraph) -> Any:
        datasets = [made(g, kind) for kind in kinds]
        chosen = g.data("ChooseFastestDataset", datasets, num_experiments=2)
        return g.data("TakeDataset", chosen, g.long(1))

    return build


def _rebatched(g: DatasetGraph) -> Any:
    rows = g.data("BatchDatasetV2", g.range(7), g.long(4), np.bool_(False))
    return g.data("ExperimentalRebatchDataset", rows, g.long(2))


def _windows(g: DatasetGraph) -> Any:
    """A dataset of one element, a window, flattened to the elements of the window."""
    g.shapes = ((),)
    inner = g.data("WindowOp", [g.long(each) for each in (4, 2)])
    g.graph_def.library.function.append(identity("window_itself", "y", VARIANT))
    windows = g.data(
        "TensorDataset", [inner], Toutput_types=(VARIANT,), output_shapes=((),), output_types=()
    )
    return g.data("FlatMapDataset", windows, [], f=NameAttrList("window_itself"))


def _window() -> Case:
    """A window of four tensors has four elements."""
    g = DatasetGraph()
    g.shapes = ((),)
    return _added_up("WindowOp", g, g.data("WindowOp", [g.long(each) for each in range(2, 6)]))


def _window_of_pairs(tensors: int) -> Case:
    """The cardinality of a window whose elements have two components."""
    g = DatasetGraph()
    g.types, g.shapes = (I64, I64), ((), ())
    window = g.data("WindowOp", [g.long(each) for each in range(tensors)])
    g.add("DatasetCardinality", window, name="count")
    return Case(f"WindowOp_pairs_{tensors}", g.graph_def, (Step({}, ("count:0",)),))


def _added_up(name: str, g: DatasetGraph, dataset: Any) -> Case:
    add = g.function("add", "AddV2", 2, I64)
    attrs: dict[str, Any] = {"output_types": (I64,), "output_shapes": ((),)}
    g.add("ReduceDataset", dataset, [g.long(100)], [], f=add, name="sum", **attrs)
    g.add("DatasetCardinality", dataset, name="count")
    return Case(name, g.graph_def, (Step({}, ("sum:0",)), Step({}, ("count:0",))))


def _cardinality() -> Case:
    g = DatasetGraph()
    for name, build in (
        ("range", lambda g: g.range(3)),
        ("filter", with_function("FilterDataset", "Greater", BOOL, 2)),
        ("repeat", lambda g: g.data("RepeatDataset", g.range(2), g.long(-1))),
    ):
        g.add("ExperimentalDatasetCardinality", build(g), name=name)
    steps = tuple(Step({}, (f"{name}:0",)) for name in ("range", "filter", "repeat"))
    return Case("ExperimentalDatasetCardinality", g.graph_def, steps)


def _random(g: DatasetGraph) -> Any:
    random = g.data("ExperimentalRandomDataset", g.long(7), g.long(8))
    return g.as_it_is(random)


def _shuffled() -> Case:
    """The sum of a global shuffle, because its order differs from TensorFlow's."""
    g = DatasetGraph()
    generator = g.add("AnonymousSeedGenerator", g.long(3), g.long(4), np.bool_(True))[0]
    dataset = g.data("GlobalShuffleDataset", g.range(7), g.long(3), g.long(4), generator)
    return _added_up("GlobalShuffleDataset", g, dataset)


ITERATED: dict[str, tuple[Build, int]] = {
    "AssertNextDataset": (_checked("AssertNextDataset", "Map"), 2),
    "AssertNextDataset_none": (_checked("AssertNextDataset"), 2),
    "ExperimentalAssertNextDataset": (_checked("ExperimentalAssertNextDataset", "Map"), 2),
    "AssertPrevDataset_none": (_checked("AssertPrevDataset"), 2),
    "AutoShardDataset": (_sharded("AutoShardDataset"), 7),
    "ExperimentalAutoShardDataset": (_sharded("ExperimentalAutoShardDataset"), 7),
    **{f"ChooseFastestDataset_{kinds}": (_chosen_of(kinds), 4)
       for kinds in ("?3", "3?", "??", "*3", "3*", "*?", "?34", "3?4", "03")},
    **{f"{prefix}ChooseFastestDataset": (_chosen(f"{prefix}ChooseFastestDataset"), 4)
       for prefix in ("", "Experimental")},
    "ExperimentalRandomDataset": (_random, 3),
    "ExperimentalScanDataset": (_scanned, 5),
    "ExperimentalRebatchDataset": (_rebatched, 5),
    "PaddedBatchDataset": (_padded, 3),
    "ParallelFilterDataset": (_filtered, 4),
    "RewriteDataset":
        (lambda g: g.data("RewriteDataset", g.range(3), np.array(b"noop", object)), 4),
    "RewriteDataset_names":
        (lambda g: g.data("RewriteDataset", g.range(3), np.array([b"noop"], object)), 1),
}  # fmt: skip

CASES = (
    *(iterated(name, build, count) for name, (build, count) in ITERATED.items()),
    _shuffled(),
    _window(),
    *map(_window_of_pairs, (2, 3, 4)),
    iterated("windows", _windows, 4),
    _cardinality(),
)
