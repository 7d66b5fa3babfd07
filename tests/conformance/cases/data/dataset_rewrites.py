"""Pipelines that TensorFlow rewrites: fusion of shuffle and repeat, and auto-sharding."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

import protos as pb
from runtime.framework.attr_value import NameAttrList, text
from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Step
from tests.conformance.cases.data.datasets import Build, DatasetGraph, iterated
from tests.node_builder import build_node_def

BOOL, I64, STRING, VARIANT = DataType.BOOL, DataType.INT64, DataType.STRING, DataType.VARIANT
FILES = [
    f"tests/conformance/files/{name}.txt".encode()
    for name in ("vocabulary", "with_duplicate", "with_empty_line", "carriage_returns")
]
# optimization_options: apply_default_optimizations (1), shuffle_and_repeat_fusion (17)
_OPTIONS = {
    "none": b"",
    "default": b"\x1a\x02\x08\x01",
    "no_default": b"\x1a\x02\x08\x00",
    "fused": b"\x1a\x03\x88\x01\x01",
    "not_fused": b"\x1a\x03\x88\x01\x00",
    "fused_alone": b"\x1a\x05\x08\x00\x88\x01\x01",
    "unreadable": b"\x1a\x09",
}


def _shuffled(g: DatasetGraph, op: str = "ShuffleDataset") -> Any:
    if op == "ShuffleDatasetV2":
        generator = g.add("AnonymousSeedGenerator", g.long(1), g.long(2), np.bool_(True))[0]
        return g.data(op, g.range(6), g.long(3), generator)
    dummy = [g.add("DummySeedGenerator")[0]] if op.endswith("V3") else []
    return g.data(
        op, g.range(6), *map(g.long, (3, 1, 2)), *dummy, reshuffle_each_iteration=True
    )  # fmt: skip


def _repeated(count: int, op: str = "ShuffleDataset", options: bytes = b"") -> Build:
    def build(g: DatasetGraph) -> Any:
        dataset = g.data("RepeatDataset", _shuffled(g, op), g.long(count))
        taken = g.data("TakeDataset", dataset, g.long(8))
        return g.data("OptionsDataset", taken, serialized_options=text(options))

    return build


def _second_of_two_inputs(g: DatasetGraph) -> Any:
    """A repeated shuffle as one of two inputs."""
    return g.data("ConcatenateDataset", g.range(2), _repeated(0)(g))


def _prefetched_in_between(g: DatasetGraph) -> Any:
    """A prefetch between shuffle and repeat: they are not fused."""
    return g.data("RepeatDataset", g.data("PrefetchDataset", _shuffled(g), g.long(1)), g.long(0))


def _read_without_iterator() -> Case:
    """Ops other than an iterator that read a repeated shuffle: only a reduction is rewritten."""
    g = DatasetGraph()
    dataset = g.data("RepeatDataset", _shuffled(g), g.long(-2))
    taken = g.data("TakeDataset", dataset, g.long(1))
    attrs: dict[str, Any] = {"output_types": (I64,), "output_shapes": ((),)}
    g.add("DatasetToSingleElement", taken, name="single", **attrs)
    g.add("DatasetCardinality", taken, name="count")
    add = g.function("add", "AddV2", 2, I64)
    g.add("ReduceDataset", taken, [g.long(100)], [], f=add, name="sum", **attrs)
    steps = tuple(Step({}, (f"{name}:0",)) for name in ("single", "count", "sum"))
    return Case("repeated_shuffle_asked_otherwise", g.graph_def, steps, message=True)


REPEATED: dict[str, Build] = {
    **{f"{op}_{count}": _repeated(count, op)
       for op in ("ShuffleDataset", "ShuffleDatasetV2", "ShuffleDatasetV3")
       for count in (-2, 0)},
    **{f"{count}": _repeated(count) for count in (-1, 2)},
    **{f"options_{name}": _repeated(0, options=options) for name, options in _OPTIONS.items()},
    "beside": _second_of_two_inputs,
    "apart": _prefetched_in_between,
}  # fmt: skip


# Values of AutoShardDataset's attribute auto_shard_policy.
_OFF, _AUTO, _FILE, _DATA, _HINT = -1, 0, 1, 2, 3
_STRINGS: dict[str, Any] = {"output_types": (STRING,), "output_shapes": ((),)}
_DATASETS: dict[str, Any] = {"output_types": (VARIANT,), "output_shapes": ((),)}


def _function(
    g: DatasetGraph, name: str, op: str, inputs: list[DataType], result: DataType, **attrs: Any
) -> NameAttrList:
    """Add a function of one op, which returns the first output of the op."""
    arguments = [(f"x{i}", data_type) for i, data_type in enumerate(inputs)]
    node = build_node_def(op, "body", arguments, attrs)
    output = {"Identity": "output", "StringLength": "output"}.get(op, "handle")
    definition = pb.FunctionDef(node_def=[node], ret={"y": f"body:{output}:0"})
    definition.signature.name = name
    for argument, data_type in arguments:
        definition.signature.input_arg.add(name=argument, type=int(data_type))
    definition.signature.output_arg.add(name="y", type=int(result))
    g.graph_def.library.function.append(definition)
    return NameAttrList(name)


def _files(g: DatasetGraph, count: int = 4) -> Any:
    g.types, g.shapes = (STRING,), ((),)
    names = np.array(FILES[:count], object)
    return g.data("TensorSliceDataset", [names], Toutput_types=(STRING,), output_types=())


def _lines_of(g: DatasetGraph, names: Any, op: str = "FlatMapDataset", *sizes: int) -> Any:
    """A dataset of the lines of files; `names` is a dataset of their names."""
    read = _function(g, "read", "TextLineDataset", [STRING, STRING, I64], VARIANT)
    captured = [np.array(b"", object), g.long(0)]
    attrs = _DATASETS if op == "MapDataset" else _STRINGS
    return g.data(op, names, captured, *map(g.long, sizes), f=read, **attrs)


def _lines(g: DatasetGraph) -> Any:
    return _lines_of(g, _files(g))


def _flat_mapped(g: DatasetGraph, dataset: Any) -> Any:
    """The same elements, from a function that makes a dataset of each element."""
    attrs = {"Toutput_types": (STRING,), "output_shapes": ((),)}
    alone = _function(g, "alone", "TensorDataset", [STRING], VARIANT, **attrs)
    return g.data("FlatMapDataset", dataset, [], f=alone)


def _mixed(g: DatasetGraph, seed: int, dataset: Any) -> Any:
    seeds = map(g.long, (4, seed, 2))
    return g.data("ShuffleDataset", dataset, *seeds, reshuffle_each_iteration=False)


def _datasets_joined(g: DatasetGraph) -> Any:
    """An interleave of a dataset of datasets, with a function that returns its argument."""
    datasets = _lines_of(g, _files(g), "MapDataset")
    itself = _function(g, "itself", "Identity", [VARIANT], VARIANT, T=VARIANT)
    sizes = map(g.long, (2, 1))
    return g.data("InterleaveDataset", datasets, [], *sizes, f=itself, **_STRINGS)


def _zipped_with_range(g: DatasetGraph) -> Any:
    numbers, lines = g.range(9), _lines(g)
    g.types, g.shapes = (STRING, I64), ((), ())
    return g.data("ZipDataset", [lines, numbers])


def _zipped(g: DatasetGraph) -> Any:
    pair = [_lines(g), _lines(g)]
    g.types, g.shapes = (STRING, STRING), ((), ())
    return g.data("ZipDataset", pair)


def _rebatched(g: DatasetGraph, *sizes: int) -> Any:
    batches = g.data("BatchDatasetV2", g.range(8), g.long(4), np.bool_(False))
    return g.data("RebatchDatasetV2", batches, np.array(sizes, np.int64), np.bool_(False))


def _ahead(g: DatasetGraph, dataset: Any) -> Any:
    return g.data("PrefetchDataset", dataset, g.long(1))


def _counted(g: DatasetGraph, dataset: Any, count: int) -> Any:
    return g.data("AssertCardinalityDataset", dataset, g.long(count))


def _hinted(g: DatasetGraph) -> Any:
    return _lines_of(g, g.data("ShardDataset", _files(g), g.long(-1), g.long(0)))


def _with_policy(g: DatasetGraph, policy: bytes) -> Any:
    return g.data("OptionsDataset", _lines(g), serialized_options=text(b"\x12" + policy))


def _skipped(g: DatasetGraph, dataset: Any) -> Any:
    return g.data("SkipDataset", dataset, g.long(1))


def _names(g: DatasetGraph) -> Any:
    """A reader of a constant vector of file names."""
    g.types, g.shapes = (STRING,), ((),)
    return g.add("TextLineDataset", np.array(FILES, object), np.array(b"", object), g.long(0))[0]


def _written(g: DatasetGraph) -> Any:
    """A pipeline with functions that was converted to a graph and back."""
    graph = g.add("DatasetToGraph", _lines_of(g, _mixed(g, 3, _files(g))))[0]
    return g.data("PrefetchDataset", g.add("DatasetFromGraph", graph)[0], g.long(1))


def _unique(g: DatasetGraph) -> Any:
    return g.data("UniqueDataset", _lines(g))


SHARDED: dict[str, Build] = {
    "flat_map": _lines,
    "interleave": lambda g: _lines_of(g, _files(g), "InterleaveDataset", 2, 1),
    "datasets": _datasets_joined,
    "nested": lambda g: _flat_mapped(g, _lines(g)),
    "behind_lists": lambda g: _lines_of(g, _skipped(g, _flat_mapped(g, _files(g)))),
    "shuffled": lambda g: _lines_of(g, _mixed(g, 3, _files(g))),
    "shuffled_twice": lambda g: _lines_of(g, _mixed(g, 3, _skipped(g, _mixed(g, 5, _files(g))))),
    "shuffled_after": lambda g: _mixed(g, 3, _lines(g)),
    "concatenated": lambda g: g.data("ConcatenateDataset", _lines(g), _lines(g)),
    "zipped": _zipped,
    "zipped_with_range": _zipped_with_range,
    "counted": lambda g: _counted(g, _lines(g), 99),
    "counted_range": lambda g: _counted(g, g.range(6), 5),
    "one_file": lambda g: _lines_of(g, _files(g, 1)),
    "repeated": lambda g: g.data("RepeatDataset", _ahead(g, _lines(g)), g.long(2)),
    "unique": _unique,
    "names": _names,
    "range": lambda g: _ahead(g, g.range(6)),
    "not_written": lambda g: g.data("NonSerializableDataset", _lines(g)),
    "written": _written,
    "rebatched": lambda g: _rebatched(g, 2, 1, 1),
    "rebatched_ahead": lambda g: _ahead(g, _rebatched(g, 2, 1, 1)),
    "rebatched_without_sizes": _rebatched,
    "hinted": _hinted,
    **{f"policy_{policy}": lambda g, value=value: _with_policy(g, value)
       for policy, value in (("file", b"\x02\x08\x01"), ("data", b"\x02\x08\x02"),
                             ("off", b"\x0b\x08" + b"\xff" * 9 + b"\x01"))},
}  # fmt: skip


def _sharded(name: str, policy: int, index: int, workers: int = 2, replicas: int = 2) -> Case:
    """A worker's shard of a pipeline; messages, which quote the rewritten graph, may differ."""

    def build(g: DatasetGraph) -> Any:
        numbers = (g.long(workers), g.long(index))
        attrs = {"auto_shard_policy": policy, "num_replicas": replicas}
        return g.data("AutoShardDataset", SHARDED[name](g), *numbers, **attrs)

    label = f"sharded_{name}_{policy}_{index}_{workers}_{replicas}"
    return dataclasses.replace(iterated(label, build, 9), message=False)


# Messages are not compared: TensorFlow's name a node that its rewrite makes.
CASES = (
    *(dataclasses.replace(iterated(f"repeated_shuffle_{name}", build, 2), message=False)
      for name, build in REPEATED.items()),
    dataclasses.replace(_read_without_iterator(), message=False),
    *(_sharded(name, policy, index) for name in SHARDED for policy in (_AUTO, _FILE)
      for index in (0, 1)),
    *(_sharded(name, _DATA, 1) for name in ("flat_map", "shuffled", "rebatched", "counted")),
    *(_sharded("hinted", policy, 1) for policy in (_HINT, _OFF, _DATA)),
    _sharded("flat_map", _HINT, 1),
    _sharded("range", _FILE, 0, 1),
    _sharded("counted", _AUTO, 0, 1),
    _sharded("rebatched", _DATA, 0, 2, 0),
)  # fmt: skip
