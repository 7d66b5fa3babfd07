"""Further dataset ops: windows, groups, shuffles, tuning, saved iterators, random access."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.framework.attr_value import NameAttrList
from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Step
from tests.conformance.cases.data.datasets import Build, DatasetGraph, iterated, with_count

F32, I32, I64 = DataType.FLOAT, DataType.INT32, DataType.INT64
BOOL, STRING, VARIANT = DataType.BOOL, DataType.STRING, DataType.VARIANT
UNKNOWN_SHAPE = (None,)


def _op(op: str, *more: Any, size: int = 5, **attrs: Any) -> Build:
    """Build an op on a range and further inputs; Python ints become int64 scalars."""

    def build(g: DatasetGraph) -> Any:
        inputs = [g.long(each) if isinstance(each, int) else each for each in more]
        return g.data(op, g.range(size), *inputs, **attrs)

    return build


def _batched(g: DatasetGraph, size: int, count: int) -> Any:
    return g.data("BatchDatasetV2", g.range(size), g.long(count), np.bool_(False))


def _on_batches(op: str, *more: Any, **attrs: Any) -> Build:
    return lambda g: g.data(op, _batched(g, 7, 3), *more, **attrs)


def _filled(g: DatasetGraph) -> Any:
    """A dataset of vectors in which n is repeated n times: [], [1], [2, 2]."""
    fill = g.function("fill", "Fill", 2, I64, T=I64, index_type=I64)
    definition = g.graph_def.library.function[-1].node_def[0]
    reshape = definition.__class__(name="vector", op="ExpandDims", input=["x0", "zero:output:0"])
    zero = definition.__class__(name="zero", op="Const")
    zero.attr["dtype"].type = int(I32)
    zero.attr["value"].tensor.dtype = int(I32)
    zero.attr["value"].tensor.tensor_shape.SetInParent()
    zero.attr["value"].tensor.int_val.append(0)
    reshape.attr["T"].type = int(I64)
    reshape.attr["Tdim"].type = int(I32)
    definition.input[0] = "vector:output:0"
    definition.input[1] = "x0"
    g.graph_def.library.function[-1].node_def.extend([reshape, zero])
    g.graph_def.library.function[-1].ret["y"] = "body:output:0"
    return g.data("MapDataset", g.range(3), [g.long(0)], f=fill)


def _padded(op: str, shape: list[int], *more: Any) -> Build:
    return lambda g: g.add(
        op, _filled(g), g.long(2), [np.array(shape, np.int64)], [np.int64(-1)], *more,
        Toutput_types=(I64,), output_shapes=UNKNOWN_SHAPE,
    )[0]  # fmt: skip


def _sparse_batch(op: str, row: int) -> Build:
    def build(g: DatasetGraph) -> Any:
        dataset = g.data(
            op, _filled(g), g.long(2), np.array([row], np.int64), output_types=(VARIANT,)
        )
        function = g.function("unpack", "DeserializeSparse", 1, I64, Tserialized=VARIANT, dtype=I64)
        definition = g.graph_def.library.function[-1]
        definition.signature.input_arg[0].type = int(VARIANT)
        definition.ret["y"] = "body:sparse_indices:0"
        return g.data("MapDataset", dataset, [], f=function)

    return build


def _interleaved(op: str, *more: Any, **attrs: Any) -> Build:
    def build(g: DatasetGraph) -> Any:
        ranges = {"output_types": (I64,), "output_shapes": ((),)}
        function = g.function("ranges", "RangeDataset", 3, VARIANT, **ranges)
        sizes = [g.long(each) if isinstance(each, int) else each for each in more]
        captures = [g.long(4), g.long(1)]
        return g.data(op, g.range(4), captures, *sizes, f=function, **attrs)

    return build


def _applied(op: str, body: str, *more: Any, result: DataType = I64, **attrs: Any) -> Build:
    """Build an op on a dataset with a function of the element and a captured 2."""

    def build(g: DatasetGraph) -> Any:
        function = g.function("applied", body, 2, result)
        inputs = [g.long(each) if isinstance(each, int) else each for each in more]
        key = "predicate" if result == BOOL else "f"
        return g.data(op, g.range(6), [g.long(2)], *inputs, **{key: function, **attrs})

    return build


def _grouped(op: str) -> Build:
    """Group elements by their remainder modulo 2, in windows of 2."""

    def build(g: DatasetGraph) -> Any:
        key = g.function("key", "FloorMod", 2, I64)
        size = g.function("size", "Maximum", 2, I64)
        batches = {"output_types": (I64,), "output_shapes": UNKNOWN_SHAPE}
        reduce = g.function("reduce", "BatchDataset", 2, VARIANT, **batches)
        signature = g.graph_def.library.function[-1].signature
        signature.input_arg[0].type = int(VARIANT)
        signature.input_arg.insert(0, type(signature.input_arg[0])(name="key", type=int(I64)))
        two = [g.long(2)]
        return g.data(
            op, g.range(7), two, two, two, key_func=key, reduce_func=reduce, window_size_func=size
        )

    return build


def _reduced_groups(op: str) -> Build:
    """Sum the elements by their remainder modulo 2."""

    def build(g: DatasetGraph) -> Any:
        functions = {
            "key_func": g.function("key", "FloorMod", 2, I64),
            "init_func": g.function("init", "Identity", 1, I64),
            "reduce_func": g.function("reduce", "AddV2", 2, I64),
            "finalize_func": g.function("finalize", "Neg", 1, I64),
        }
        for function in g.graph_def.library.function:
            if function.signature.name in ("init", "finalize"):
                output = "output" if function.signature.name == "init" else "y"
                function.ret["y"] = f"body:{output}:0"
        return g.data(op, g.range(7), [g.long(2)], [], [], [], **functions)

    return build


def _windows(op: str, *sizes: int, **attrs: Any) -> Build:
    """Build windows of a range, each converted to a batch."""

    def build(g: DatasetGraph) -> Any:
        inputs = [g.long(size) for size in sizes]
        drop = [] if op != "WindowDataset" else [np.bool_(False)]
        windows = g.data(op, g.range(7), *inputs, *drop, **attrs, output_types=(VARIANT,))
        batches = {"output_types": (I64,), "output_shapes": UNKNOWN_SHAPE}
        function = g.function("batches", "BatchDataset", 2, VARIANT, **batches)
        g.graph_def.library.function[-1].signature.input_arg[0].type = int(VARIANT)
        return g.data("FlatMapDataset", windows, [g.long(9)], f=function)

    return build


def _shuffled(op: str, *more: Any, reshuffles: bool = True, repeats: bool = False) -> Build:
    def build(g: DatasetGraph) -> Any:
        inputs = [g.long(each) if isinstance(each, int) else each for each in more]
        if op.endswith(("V2", "V3")):
            inputs.append(g.add("DummySeedGenerator")[0])
        dataset = g.data(op, g.range(6), *inputs, reshuffle_each_iteration=reshuffles)
        return g.data("RepeatDataset", dataset, g.long(2)) if repeats else dataset

    return build


def _shuffled_by_generator(g: DatasetGraph) -> Any:
    generator = g.add("AnonymousSeedGenerator", np.int64(3), np.int64(4), np.bool_(True))[0]
    dataset = g.data("ShuffleDatasetV2", g.range(6), g.long(3), generator)
    return g.data("RepeatDataset", dataset, g.long(2))


def _random(op: str, **attrs: Any) -> Build:
    def build(g: DatasetGraph) -> Any:
        dummy = [g.add("DummySeedGenerator")[0]] if op.endswith("V2") else []
        dataset = g.data(op, g.long(7), g.long(8), *dummy, **attrs)
        return g.data("RepeatDataset", g.data("TakeDataset", dataset, g.long(3)), g.long(2))

    return build


def _directed(g: DatasetGraph, prefix: str = "") -> Any:
    choices = np.array([1, 0, 0, 1, 1, 0], np.int64)
    selector = g.data("TensorSliceDataset", [choices], Toutput_types=(I64,), output_types=())
    return g.data(f"{prefix}DirectedInterleaveDataset", selector, [g.range(2), g.range(9, 5)])


def _sliced(op: str, values: Any) -> Build:
    def build(g: DatasetGraph) -> Any:
        array = np.array(values, np.int64)
        return g.data(
            op, g.data("TensorSliceDataset", [array], Toutput_types=(I64,), output_types=())
        )

    return build


def _sparse_slices(g: DatasetGraph) -> Any:
    g.types, g.shapes = (I64, F32, I64), (None, None, None)
    indices = np.array([[0, 1], [2, 0], [2, 2]], np.int64)
    values = np.array([1, 2, 3], np.float32)
    return g.add("SparseTensorSliceDataset", indices, values, np.array([3, 3], np.int64))[0]


def _generated(g: DatasetGraph) -> Any:
    """A GeneratorDataset that always gives the same element, as its state does not change."""
    attrs = {"init_func": g.function("init", "Identity", 1, I64),
             "next_func": g.function("next", "AddV2", 2, I64),
             "finalize_func": g.function("finalize", "Identity", 1, I64)}  # fmt: skip
    for function in g.graph_def.library.function:
        if function.node_def[0].op == "Identity":
            function.ret["y"] = "body:output:0"
    return g.data("GeneratorDataset", [g.long(3)], [g.long(4)], [], **attrs)


def _cached(op: str) -> Build:
    def build(g: DatasetGraph) -> Any:
        cache = [g.add("DummyMemoryCache")[0]] if op.endswith("V2") else []
        return g.data("RepeatDataset", g.data(op, g.range(3), b"", *cache), g.long(2))

    return build


def _cached_anonymously(g: DatasetGraph) -> Any:
    cache = g.add("AnonymousMemoryCache")[0]
    return g.data("RepeatDataset", g.data("CacheDatasetV2", g.range(3), b"", cache), g.long(2))


def _missing_file(op: str, *more: Any) -> Build:
    def build(g: DatasetGraph) -> Any:
        g.types, g.shapes = (STRING,), ((),)
        return g.add(op, b"/nowhere/at/all", *more)[0]

    return build


_FALSE, _TRUE = np.bool_(False), np.bool_(True)
_KEEPS = {"preserve_cardinality": True}
ITERATED: dict[str, tuple[Build, int]] = {
    **{op: (_op(op), 3) for op in (
        "ExperimentalNonSerializableDataset", "FinalizeDataset", "ModelDataset",
        "NonSerializableDataset", "ExperimentalIgnoreErrorsDataset", "IgnoreErrorsDataset",
    )},
    "OptimizeDataset": (_op("OptimizeDataset", np.array([], object)), 3),
    "OptimizeDatasetV2": (_op("OptimizeDatasetV2", *[np.array([], object)] * 3), 3),
    **{f"{prefix}LatencyStatsDataset": (_op(f"{prefix}LatencyStatsDataset", b"tag"), 3)
       for prefix in ("", "Experimental")},
    **{f"{prefix}BytesProducedStatsDataset": (_op(f"{prefix}BytesProducedStatsDataset", b"tag"), 3)
       for prefix in ("", "Experimental")},
    **{f"{prefix}PrivateThreadPoolDataset": (_op(f"{prefix}PrivateThreadPoolDataset", 1), 3)
       for prefix in ("", "Experimental")},
    **{f"{prefix}MaxIntraOpParallelismDataset":
       (_op(f"{prefix}MaxIntraOpParallelismDataset", 1), 3) for prefix in ("", "Experimental")},
    **{f"{prefix}SleepDataset": (_op(f"{prefix}SleepDataset", 1), 3)
       for prefix in ("", "Experimental")},
    **{f"{op}_{count}": (_op(op, count), 5) for op in ("AssertCardinalityDataset",)
       for count in (4, 5, 6, -2)},
    "shards_none": (_op("AutoShardDataset", 0, 0), 0),
    "shards_beyond": (_op("AutoShardDataset", 2, 2), 0),
    "threads_negative": (_op("PrivateThreadPoolDataset", -1), 0),
    "prefetch_negative": (_op("PrefetchDataset", -2), 0),
    "BatchDataset": (lambda g: g.as_it_is(_op("BatchDataset", 2)(g)), 3),
    "ParallelBatchDataset": (_op("ParallelBatchDataset", 2, 1, _TRUE), 3),
    **{f"padded_{shape}": (_padded("PaddedBatchDatasetV2", shape, _FALSE), 3)
       for shape in ([-1], [3], [1], [2, 2])},
    "padded_drop": (_padded("PaddedBatchDatasetV2", [-1], _TRUE), 2),
    **{f"{prefix}DenseToSparseBatchDataset_{row}":
       (_sparse_batch(f"{prefix}DenseToSparseBatchDataset", row), 3)
       for prefix in ("", "Experimental") for row in (-1, 4, 1)},
    **{f"{prefix}UnbatchDataset": (_on_batches(f"{prefix}UnbatchDataset"), 8)
       for prefix in ("", "Experimental")},
    **{f"rebatch_{sizes}_{drop}":
       (_on_batches("RebatchDatasetV2", np.array(sizes, np.int64), np.bool_(drop)), 6)
       for sizes in ([2], [4, 1], [1, 0]) for drop in (0, 1)},
    "rebatch_scalar": (_on_batches("RebatchDatasetV2", np.int64(5), _FALSE), 3),
    **{f"split_batches_{count}": (_on_batches("RebatchDataset", np.int64(count)), 10)
       for count in (0, 1, 2, 4)},
    "list": (lambda g: g.data("ListDataset", [np.int64(3), np.int64(1)]), 3),
    **{f"window_{sizes}": (_windows("WindowDataset", *sizes), 7)
       for sizes in ((2, 2, 1), (3, 1, 2), (2, 3, 1), (0, 1, 1), (1, 0, 1), (1, 1, 0))},
    **{f"experimental_sliding_{size}":
       (_op("ExperimentalSlidingWindowDataset", size, 2, 1, size=7), 4) for size in (3, 8, 0)},
    "experimental_interleave":
       (_interleaved("ExperimentalParallelInterleaveDataset", 2, 1, _FALSE, 1, 0), 11),
    "sliding": (_op("SlidingWindowDataset", 3, 2, 1, size=7), 4),
    "interleave": (_interleaved("InterleaveDataset", 2, 1), 11),
    "interleave_blocks": (_interleaved("InterleaveDataset", 3, 2), 11),
    "interleave_none": (_interleaved("InterleaveDataset", 0, 1), 0),
    "interleave_no_block": (_interleaved("InterleaveDataset", 1, 0), 0),
    "interleave_v1": (_interleaved("ParallelInterleaveDataset", 2, 1, _FALSE, 1, 0), 11),
    "interleave_v2": (_interleaved("ParallelInterleaveDatasetV2", 2, 1, 2), 11),
    "interleave_v3": (
        _interleaved("ParallelInterleaveDatasetV3", 2, 1, 2, deterministic="true"), 11),
    "interleave_v4": (
        _interleaved("ParallelInterleaveDatasetV4", 2, 1, 1, 0, 2, deterministic="true"), 11),
    "interleave_legacy": (
        _interleaved("LegacyParallelInterleaveDatasetV2", 2, 1, 1, 0, deterministic="true"), 11),
    **{f"{prefix}MapAndBatchDataset":
       (_applied(f"{prefix}MapAndBatchDataset", "Mul", 4, 1, _FALSE, **_KEEPS), 3)
       for prefix in ("", "Experimental")},
    "ParallelMapDataset": (_applied("ParallelMapDataset", "Mul", np.int32(2)), 4),
    "ExperimentalTakeWhileDataset": (
        _applied("ExperimentalTakeWhileDataset", "Less", result=BOOL), 3),
    **{f"{prefix}GroupByWindowDataset": (_grouped(f"{prefix}GroupByWindowDataset"), 5)
       for prefix in ("", "Experimental")},
    **{f"{prefix}GroupByReducerDataset": (_reduced_groups(f"{prefix}GroupByReducerDataset"), 3)
       for prefix in ("", "Experimental")},
    "shuffle": (_shuffled("ShuffleDataset", 3, 1, 2, repeats=True), 12),
    "shuffle_same": (_shuffled("ShuffleDataset", 3, 1, 2, reshuffles=False, repeats=True), 12),
    "shuffle_large": (_shuffled("ShuffleDatasetV3", 99, 1, 2), 6),
    "shuffle_all": (_shuffled("ShuffleDatasetV3", -2, 5, 6), 6),
    "shuffle_none": (_shuffled("ShuffleDataset", 0, 1, 2), 0),
    "shuffle_generator": (_shuffled_by_generator, 12),
    "shuffle_repeat": (_shuffled("ShuffleAndRepeatDataset", 4, 1, 2, 2), 12),
    **{f"shuffle_repeat_{count}": (_shuffled("ShuffleAndRepeatDataset", 4, 1, 2, count), 1)
       for count in (0, -2)},
    "shuffle_repeat_v2": (_shuffled("ShuffleAndRepeatDatasetV2", 4, 1, 2, -1), 14),
    **{op: (_random(op), 6) for op in ("RandomDataset",)},
    "random_again": (_random("RandomDatasetV2", rerandomize_each_iteration=True), 6),
    "sampling": (_op("SamplingDataset", np.float32(0.5), 3, 4, size=12), 5),
    "directed": (_directed, 7),
    "experimental_directed": (lambda g: _directed(g, "Experimental"), 7),
    **{f"{prefix}UniqueDataset": (_sliced(f"{prefix}UniqueDataset", [3, 1, 3, 2, 1]), 4)
       for prefix in ("", "Experimental")},
    "sparse_slices": (_sparse_slices, 4),
    "generator": (_generated, 3),
    "cache": (_cached("CacheDataset"), 6),
    "cache_v2": (_cached("CacheDatasetV2"), 6),
    "cache_anonymous": (_cached_anonymously, 6),
    "shard_index": (_op("ShardDataset", 2, 2), 0),
    "shard_count": (_op("ShardDataset", 0, 0), 0),
    "take_none": (with_count("TakeDataset", 0), 1),
    "wrapped": (lambda g: g.add(
        "UnwrapDatasetVariant", g.add("WrapDatasetVariant", g.range(2))[0])[0], 2),
    "text_missing": (_missing_file("TextLineDataset", b"", np.int64(0)), 1),
    "tf_record_missing": (_missing_file("TFRecordDataset", b"", np.int64(0)), 1),
    "fixed_v2_missing": (
        _missing_file("FixedLengthRecordDatasetV2", *[np.int64(1)] * 4, b"GZIP"), 1),
}  # fmt: skip


def _random_access() -> Case:
    g = DatasetGraph()
    index = g.placeholder(I64, "index", ())
    sources = {
        "range": g.range(7, 1, 2),
        "batch": _batched(g, 5, 2),
        "filter": g.data("SkipDataset", g.range(5), g.long(2)),
        "repeat": g.data("RepeatDataset", g.range(2), g.long(2)),
        "cache": g.data("CacheDataset", with_count("SkipDataset", 2)(g), b""),
    }
    for name, dataset in sources.items():
        g.data("GetElementAtIndex", dataset, index, name=name)
    steps = [
        Step({"index:0": np.array(i)}, (f"{name}:0",)) for name in sources for i in (-1, 0, 2, 9)
    ]
    return Case("random_access", g.graph_def, tuple(steps), message=True)


def _one_shot(name: str, step: int) -> Case:
    """A one-shot iterator over a function's dataset, read through its string handle."""
    g = DatasetGraph()
    attrs = {"output_types": (I64,), "output_shapes": ((),)}
    factory: NameAttrList = g.function("factory", "RangeDataset", 3, VARIANT, **attrs)
    del g.graph_def.library.function[-1].signature.input_arg[:]
    node_defs = g.graph_def.library.function[-1].node_def
    del node_defs[0].input[:]
    for value in (0, 2, step):
        const = node_defs[0].__class__(name=f"c{len(node_defs)}", op="Const")
        const.attr["dtype"].type = int(I64)
        const.attr["value"].tensor.dtype = int(I64)
        const.attr["value"].tensor.tensor_shape.SetInParent()
        const.attr["value"].tensor.int64_val.append(value)
        node_defs[0].input.append(f"{const.name}:output:0")
        node_defs.append(const)
    iterator = g.add("OneShotIterator", dataset_factory=factory, name="it", **attrs)[0]
    g.add("IteratorGetNext", iterator, name="next", **attrs)
    take = Step({}, ("next:0",))
    return Case(name, g.graph_def, (take,) * 4)


CASES = (
    *(iterated(name, build, count) for name, (build, count) in ITERATED.items()),
    _random_access(),
    _one_shot("one_shot", 1),
    _one_shot("one_shot_failing", 0),
)
