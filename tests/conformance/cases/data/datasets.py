"""Datasets: several steps take elements from an iterator that the session keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import protos as pb
from runtime.framework.attr_value import NameAttrList
from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step
from tests.node_builder import build_node_def

F32, I64, BOOL, VARIANT = DataType.FLOAT, DataType.INT64, DataType.BOOL, DataType.VARIANT
# Options that disable rewrites (optimization_options.apply_default_optimizations and
# autotune_options.enabled are false): a rewrite serializes the dataset, which some do not support.
_AS_IT_IS = "\x1a\x02\x08\x00\x3a\x02\x08\x00"
Output = tuple[str, DataType]
Build = Callable[["DatasetGraph"], Any]


class DatasetGraph(Graph):
    """A graph of datasets; their elements are int64 scalars unless `types` and `shapes` are set."""

    types: tuple[DataType, ...] = (I64,)
    shapes: tuple[Any, ...] = (None,)

    def data(self, op: str, *inputs: Any, **attrs: Any) -> Any:
        """Add a dataset op and return its dataset."""
        attrs = {"output_types": self.types, "output_shapes": self.shapes, **attrs}
        return self.add(op, *inputs, **attrs)[0]

    def long(self, value: int) -> Any:
        return self.add("PlaceholderWithDefault", np.int64(value), shape=())[0]

    def range(self, stop: int, start: int = 0, step: int = 1) -> Any:
        return self.data("RangeDataset", *map(self.long, (start, stop, step)))

    def as_it_is(self, dataset: Any) -> Any:
        """Return the dataset with options that disable rewrites."""
        return self.data("OptionsDataset", dataset, serialized_options=_AS_IT_IS)

    def function(
        self, name: str, op: str, inputs: int, result: DataType, **attrs: Any
    ) -> NameAttrList:
        """Add a function of int64 inputs whose body is one op on them."""
        arguments = [(f"x{i}", I64) for i in range(inputs)]
        node = build_node_def(op, "body", arguments, attrs)
        definition = pb.FunctionDef(node_def=[node], ret={"y": f"body:{_output_of(op)}:0"})
        definition.signature.name = name
        for argument, data_type in arguments:
            definition.signature.input_arg.add(name=argument, type=int(data_type))
        definition.signature.output_arg.add(name="y", type=int(result))
        self.graph_def.library.function.append(definition)
        return NameAttrList(name)


def _output_of(op: str) -> str:
    return {"RangeDataset": "handle", "BatchDataset": "handle"}.get(op, "z")


def iterated(name: str, build: Build, count: int) -> Case:
    """Start an iterator and take `count` elements, which may be more than the dataset has.

    The first step takes an element before the start; the last ones start the iterator again.
    """
    g = DatasetGraph()
    dataset = build(g)
    attrs = {"output_types": g.types, "output_shapes": g.shapes}
    iterator = g.add("IteratorV2", shared_name="it", container="", **attrs)[0]
    g.add("MakeIterator", dataset, iterator, name="start")
    outputs = g.add("IteratorGetNext", iterator, name="next", **attrs)
    g.add("DatasetCardinality", dataset, name="cardinality")
    take = Step({}, [output for output, _ in outputs])
    steps = (
        take, Step({}, (), ("start",)), *[take] * count, Step({}, ("cardinality:0",)),
        Step({}, (), ("start",)), take,
    )  # fmt: skip
    return Case(name, g.graph_def, steps, message=True)


def _slices(g: DatasetGraph) -> Any:
    g.types, g.shapes = (F32, I64), ((2,), ())
    floats = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    return g.data(
        "TensorSliceDataset", [floats, np.arange(3)], Toutput_types=g.types, output_types=()
    )


def _batch(size: int, drops: bool) -> Build:
    def build(g: DatasetGraph) -> Any:
        drop = g.add("PlaceholderWithDefault", np.bool_(drops), shape=())[0]
        return g.data("BatchDatasetV2", g.range(5), g.long(size), drop)

    return build


def with_count(op: str, count: int, size: int = 4) -> Build:
    return lambda g: g.data(op, g.range(size), g.long(count))


def with_function(op: str, body: str, result: DataType, inputs: int = 1, **attrs: Any) -> Build:
    """Build a dataset op whose function takes the element and `inputs` − 1 captured values of 2."""

    def build(g: DatasetGraph) -> Any:
        function = g.function("body_of_case", body, inputs, result, **attrs)
        captured = [g.long(2) for _ in range(inputs - 1)]
        key = "predicate" if result == BOOL else "f"
        extra = [g.long(2)] if op == "ParallelMapDatasetV2" else []
        return g.data(op, g.range(6), captured, *extra, **{key: function})

    return build


def _flat_map(g: DatasetGraph) -> Any:
    attrs = {"output_types": (I64,), "output_shapes": ((),)}
    function = g.function("ranges", "RangeDataset", 3, VARIANT, **attrs)
    return g.data("FlatMapDataset", g.range(3), [g.long(4), g.long(2)], f=function)


def _reduced() -> Case:
    g = DatasetGraph()
    add = g.function("add", "AddV2", 2, I64)
    source = g.range(5)
    for name, dataset in (("sum", source), ("none", g.range(0))):
        g.add(
            "ReduceDataset", dataset, [g.long(100)], [], f=add, name=name, output_types=(I64,),
            output_shapes=((),),
        )  # fmt: skip
    for name, size in (("one", 1), ("many", 2), ("empty", 0)):
        g.add(
            "DatasetToSingleElement", g.range(size), name=name, output_types=(I64,),
            output_shapes=((),),
        )  # fmt: skip
    names = ("sum", "none", "one", "many", "empty")
    return Case("reduced", g.graph_def, tuple(Step({}, (f"{n}:0",)) for n in names), message=True)


def _optionals() -> Case:
    g = DatasetGraph()
    attrs = {"output_types": (I64,), "output_shapes": (None,)}
    iterator = g.add("IteratorV2", shared_name="it", container="", **attrs)[0]
    g.add("MakeIterator", g.range(2), iterator, name="start")
    text = g.add("IteratorToStringHandle", iterator)[0]
    again = g.add("IteratorFromStringHandleV2", text)[0]
    optional = g.add("IteratorGetNextAsOptional", again, **attrs)[0]
    g.add("OptionalHasValue", optional, name="has")
    g.add("IteratorGetNextSync", iterator, name="sync", **attrs)
    has = Step({}, ("has:0",))
    steps = (Step({}, (), ("start",)), has, Step({}, ("sync:0",)), has)
    return Case("optionals", g.graph_def, steps)


ITERATED: dict[str, tuple[Build, int]] = {
    "range": (lambda g: g.range(7, 1, 3), 3),
    "range_down": (lambda g: g.range(0, 3, -2), 3),
    "range_zero_step": (lambda g: g.range(3, 0, 0), 0),
    "slices": (_slices, 4),
    "tensor": (lambda g: g.data("TensorDataset", [np.arange(3)], Toutput_types=(I64,),
                                output_types=()), 2),
    "batch": (_batch(2, False), 4),
    "batch_drop": (_batch(2, True), 3),
    "batch_zero": (_batch(0, False), 0),
    "repeat": (with_count("RepeatDataset", 2, 2), 5),
    "repeat_none": (with_count("RepeatDataset", 0, 2), 1),
    "repeat_forever": (with_count("RepeatDataset", -1, 2), 5),
    "repeat_empty": (with_count("RepeatDataset", -1, 0), 1),
    "take": (with_count("TakeDataset", 2), 3),
    "take_all": (with_count("TakeDataset", -1), 5),
    "skip": (with_count("SkipDataset", 3), 2),
    "skip_all": (with_count("SkipDataset", -1), 1),
    "prefetch": (with_count("PrefetchDataset", 2), 5),
    "shard": (lambda g: g.data("ShardDataset", g.range(5), g.long(2), g.long(1)), 3),
    "concatenate": (lambda g: g.data("ConcatenateDataset", g.range(2), g.range(1)), 4),
    "options": (lambda g: g.data("OptionsDataset", g.range(2), serialized_options=""), 3),
    "map": (with_function("MapDataset", "Mul", I64, 2), 4),
    "map_failing": (with_function("MapDataset", "FloorDiv", I64, 2), 4),
    "parallel_map": (with_function("ParallelMapDatasetV2", "Mul", I64, 2), 4),
    "filter": (with_function("FilterDataset", "Greater", BOOL, 2), 4),
    "take_while": (with_function("TakeWhileDataset", "Less", BOOL, 2), 4),
    "flat_map": (_flat_map, 6),
}  # fmt: skip


def _zip(g: DatasetGraph) -> Any:
    inner = [g.range(3), g.range(2)]
    g.types, g.shapes = (I64, I64), (None, None)
    return g.data("ZipDataset", inner)


def _scan(g: DatasetGraph) -> Any:
    """Running sums: the function returns its sum as the new state and as the element."""
    add = g.function("scan_add", "AddV2", 2, I64)
    definition = g.graph_def.library.function[-1]
    definition.signature.output_arg.add(name="again", type=int(I64))
    definition.ret["again"] = definition.ret["y"]
    return g.data("ScanDataset", g.range(4), [g.long(10)], [], f=add)


CASES = (
    *(iterated(name, build, count) for name, (build, count) in ITERATED.items()),
    iterated("zip", _zip, 3),
    iterated("scan", _scan, 5),
    _reduced(),
    _optionals(),
)
