"""Datasets with unusual arguments: limits of int64, shapes that do not match, tuning options."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step
from tests.conformance.cases.data import dataset_pipelines, datasets
from tests.conformance.cases.data.datasets import Build, DatasetGraph, iterated

F32, I32, I64, BOOL = DataType.FLOAT, DataType.INT32, DataType.INT64, DataType.BOOL
VARIANT = DataType.VARIANT
LAST, FIRST = 2**63 - 1, -(2**63)


def longs(values: Any) -> np.ndarray:
    return np.array(values, np.int64)


def _ranges() -> list[Case]:
    """Ranges (start, stop, step) whose next number or whose span exceeds int64."""
    spans = (
        (0, LAST, 1), (0, LAST, -1), (LAST - 2, LAST, 2), (LAST - 3, LAST - 1, 5), (FIRST, 5, 1),
        (FIRST + 3, FIRST, -2), (LAST, FIRST, -1), (1, FIRST, 1), (0, 5, LAST), (5, 0, FIRST),
        (FIRST, 0, LAST),
    )  # fmt: skip

    def build(start: int, stop: int, step: int) -> Build:
        return lambda g: g.range(stop, start, step)

    return [iterated(f"range_{span}", build(*span), 3) for span in spans]


def _on_range(op: str, *more: Any, size: int = 5, **attrs: Any) -> Build:
    def build(g: DatasetGraph) -> Any:
        inputs = [g.long(each) if isinstance(each, int) else each for each in more]
        return g.data(op, g.range(size), *inputs, **attrs)

    return build


def _many(g: DatasetGraph) -> Any:
    """A dataset with more elements than int64 can count."""
    taken = g.data("TakeDataset", g.range(LAST), g.long(LAST))
    return g.data("RepeatDataset", taken, g.long(2))


def _unbatched(g: DatasetGraph) -> Any:
    batches = g.data("BatchDatasetV2", g.range(7), g.long(3), np.bool_(True))
    return g.data("UnbatchDataset", batches)


def _sparse_batch(row: Any) -> Build:
    def build(g: DatasetGraph) -> Any:
        dataset = g.data(
            "DenseToSparseBatchDataset", dataset_pipelines._filled(g), g.long(2), longs(row),
            output_types=(VARIANT,),
        )  # fmt: skip
        function = g.function("unpack", "DeserializeSparse", 1, I64, Tserialized=VARIANT, dtype=I64)
        definition = g.graph_def.library.function[-1]
        definition.signature.input_arg[0].type = int(VARIANT)
        definition.ret["y"] = "body:sparse_indices:0"
        return g.data("MapDataset", dataset, [], f=function)

    return build


def _failing_groups(g: DatasetGraph) -> Any:
    """GroupByWindowDataset whose reduce function fails: batches of size 0."""
    key = g.function("key", "FloorMod", 2, I64)
    size = g.function("size", "Maximum", 2, I64)
    batches: dict[str, Any] = {"output_types": (I64,), "output_shapes": (None,)}
    reduce = g.function("reduce", "BatchDataset", 2, VARIANT, **batches)
    signature = g.graph_def.library.function[-1].signature
    signature.input_arg[0].type = int(VARIANT)
    signature.input_arg.insert(0, type(signature.input_arg[0])(name="key", type=int(I64)))
    two, none = [g.long(2)], [g.long(0)]
    return g.data(
        "GroupByWindowDataset", g.range(7), two, none, two, key_func=key, reduce_func=reduce,
        window_size_func=size,
    )  # fmt: skip


def _sparse_slices(indices: Any, values: Any, shape: Any) -> Build:
    def build(g: DatasetGraph) -> Any:
        g.types, g.shapes = (I64, F32, I64), (None, None, None)
        given = (longs(indices), np.array(values, np.float32), longs(shape))
        fed = [g.add("PlaceholderWithDefault", each, shape=None)[0] for each in given]
        return g.add("SparseTensorSliceDataset", *fed)[0]

    return build


SPARSE: dict[str, tuple[Any, Any, Any]] = {
    "negative_count": ([[0, 1]], [1], [-3, 3]),
    "negative_width": ([[0, 1]], [1], [3, -3]),
    "too_large": ([[0, 1]], [1], [2**40, 2**40]),
    "before_the_first": ([[-5, 1], [-3, 0]], [1, 2], [3, 3]),
    "far_before": ([[1, 0], [-(2**63), 0]], [1, 2], [3, 3]),
    "minus_one": ([[-1, 1], [2, 0]], [1, 2], [3, 3]),
    "one_too_late": ([[-1, 1], [0, 0], [2, 1], [2, 2]], [1, 2, 3, 4], [3, 3]),
    "all_too_late": ([[-1, 1], [0, 0], [1, 1], [2, 2]], [1, 2, 3, 4], [3, 3]),
    "beyond_the_last": ([[3, 1], [4, 0]], [1, 2], [3, 3]),
    "no_dimensions": (np.zeros((1, 0)), [1], []),
    "values": ([[0, 1]], [1, 2], [2, 2]),
    "ranks": ([[0, 1]], [1], [2]),
    "vector": ([0, 1], [1], [2, 2]),
    "matrix_of_values": ([[0, 1]], [[1]], [2, 2]),
    "matrix_of_sizes": ([[0, 1]], [1], [[2, 2]]),
}
_NAMES = np.array(["Map"], object)
_MATRIX = np.array([["Map"]], object)
_VECTOR = np.array([], object)
ITERATED: dict[str, tuple[Build, int]] = {
    "repeat_overflow": (_many, 2),
    "unbatch_counted": (_unbatched, 7),
    **{f"sparse_batch_{row}": (_sparse_batch(row), 3)
       for row in ([4, 4], [-1, LAST, LAST], [LAST, LAST], [1])},
    **{f"sparse_slices_{name}": (_sparse_slices(*given), 4) for name, given in SPARSE.items()},
    **{f"sliding_{n}_{size}_{shift}_{drop}":
       (_on_range("SlidingWindowDataset", size, shift, 1, size=n, drop_remainder=drop), 2)
       for n, size, shift in ((8, 3, 2), (3, 5, 1)) for drop in (True, False)},
    **{f"threads_{count}": (_on_range("PrivateThreadPoolDataset", count), 1)
       for count in (65536, 2**31, 2**32, FIRST)},
    **{f"intra_op_{count}": (_on_range("MaxIntraOpParallelismDataset", count), 1)
       for count in (2**31, FIRST)},
    "optimize_names": (_on_range("OptimizeDataset", _NAMES), 1),
    "optimize_matrix": (_on_range("OptimizeDataset", _MATRIX), 1),
    "optimize_enabled": (_on_range("OptimizeDatasetV2", _MATRIX, _VECTOR, _VECTOR), 1),
    "optimize_disabled": (_on_range("OptimizeDatasetV2", _VECTOR, _MATRIX, _VECTOR), 1),
    "optimize_default": (_on_range("OptimizeDatasetV2", _VECTOR, _VECTOR, _MATRIX), 1),
    **{f"shard_{size}_{index}":
       (_on_range("ShardDataset", 3, index, size=size, require_non_empty=True), 2)
       for size in (0, 1, 2, 3) for index in (0, 1)},
    "sleep_negative": (_on_range("SleepDataset", -1), 0),
    "rebatch_nothing": (
        lambda g: g.data("RebatchDatasetV2", dataset_pipelines._batched(g, 5, 3), longs([0]),
                         np.bool_(False)), 3),
    "padded_scalar_shape": (
        lambda g: g.add(
            "PaddedBatchDatasetV2", dataset_pipelines._filled(g), g.long(2), [longs(-1)],
            [np.int64(-1)], np.bool_(False), Toutput_types=(I64,), output_shapes=(None,))[0], 0),
    **{f"take_{count}": (_on_range("TakeDataset", count), 1) for count in (-1, -2, -7)},
    **{f"calls_{op}": (dataset_pipelines._interleaved(op, 1, 1, *more, 2), 1)
       for op, more in (("ParallelInterleaveDatasetV2", ()), ("ParallelInterleaveDatasetV3", ()),
                        ("ParallelInterleaveDatasetV4", (3, 3)))},
    # auto_shard_policy: −1 off, 0 auto, 2 data, 3 hint; −2 is invalid
    **{f"auto_shard_{workers}_{index}_{policy}":
       (_on_range("AutoShardDataset", workers, index, auto_shard_policy=policy), 4)
       for workers, index in ((1, 0), (2, 1), (3, 2), (7, 0), (7, 6))
       for policy in (-2, -1, 0, 2, 3)},
    "auto_shard_batches": (
        lambda g: g.data("AutoShardDataset", dataset_pipelines._batched(g, 7, 2), g.long(2),
                         g.long(1)), 3),
    "experimental_auto_shard": (_on_range("ExperimentalAutoShardDataset", 2, 1), 3),
}  # fmt: skip


def _interleaves() -> list[Case]:
    """Each interleave op with each of its integer arguments set to 0, −1 and −2."""
    tuned = {
        "InterleaveDataset": (2, 1),
        "ParallelInterleaveDataset": (2, 1, np.bool_(False), 2, 2),
        "ParallelInterleaveDatasetV2": (2, 1, 2),
        "ParallelInterleaveDatasetV3": (2, 1, 2),
        "ParallelInterleaveDatasetV4": (2, 1, 3, 3, 2),
        "LegacyParallelInterleaveDatasetV2": (2, 1, 2, 2),
    }
    cases = []
    for op, sizes in tuned.items():
        for at, size in enumerate(sizes):
            for changed in (0, -1, -2) if isinstance(size, int) else ():
                given = (*sizes[:at], changed, *sizes[at + 1 :])
                build = dataset_pipelines._interleaved(op, *given)
                cases.append(iterated(f"{op}_{at}_{changed}", build, 2))
    return cases


def _seeds(name: str, seed: Any, seed2: Any, reshuffle: Any) -> Case:
    g = Graph()
    fed = [
        g.add("PlaceholderWithDefault", each, shape=None)[0] for each in (seed, seed2, reshuffle)
    ]
    g.add("AnonymousSeedGenerator", *fed, name="made")
    return Case(f"seeds_{name}", g.graph_def, (Step({}, (), ("made",)),), message=True)


def _expecting_seven(case: Case) -> Case:
    """Return the case with output_shapes [7] in all nodes with one output shape."""
    graph = type(case.graph)()
    graph.CopyFrom(case.graph)
    for node in graph.node:
        shapes = node.attr["output_shapes"].list.shape if "output_shapes" in node.attr else ()
        if len(shapes) == 1:
            del shapes[0].dim[:]
            shapes[0].unknown_rank = False
            shapes[0].dim.add(size=7)
    return dataclasses.replace(case, name=f"{case.name}_of_7", graph=graph)


# Cases to run with wrong output_shapes: some ops compute the shapes, others trust the attribute.
_WITH_WRONG_SHAPES = (
    "range", "tensor", "slices", "batch", "batch_drop", "repeat", "take", "skip", "shard",
    "concatenate", "map", "filter", "flat_map", "reduced", "optionals", "IgnoreErrorsDataset",
    "ModelDataset", "NonSerializableDataset", "BatchDataset", "ParallelBatchDataset",
    "padded_[3]", "padded_drop", "UnbatchDataset", "list", "interleave", "shuffle", "directed",
    "UniqueDataset", "cache", "text_missing", "random_access", "generator", "RandomDataset",
)  # fmt: skip

CASES = (
    *_ranges(),
    *(iterated(name, build, count) for name, (build, count) in ITERATED.items()),
    *_interleaves(),
    # TensorFlow's message ends with a name that its error reporting adds
    dataclasses.replace(iterated("group_by_window_failing", _failing_groups, 2), message=False),
    _seeds("scalars", np.int64(1), np.int64(2), np.bool_(True)),
    _seeds("first", longs([1]), np.int64(2), np.bool_(True)),
    _seeds("second", np.int64(1), longs([2]), np.bool_(True)),
    _seeds("reshuffle", np.int64(1), np.int64(2), np.array([True])),
    *(
        _expecting_seven(case)
        for case in (*datasets.CASES, *dataset_pipelines.CASES)
        if case.name in _WITH_WRONG_SHAPES
    ),
)
