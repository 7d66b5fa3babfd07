"""Datasets converted to graphs and back, fingerprints, tables filled from datasets."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step
from tests.conformance.cases.data.datasets import Build, DatasetGraph, iterated, with_function

I64, F32, STRING = DataType.INT64, DataType.FLOAT, DataType.STRING
_MODERATE = b"\x08\x02"  # CardinalityOptions(compute_level=CARDINALITY_COMPUTE_MODERATE)


def _shuffled(g: DatasetGraph) -> Any:
    generator = g.add("AnonymousSeedGenerator", g.long(3), g.long(4), np.bool_(False))[0]
    return g.data("ShuffleDatasetV3", g.range(5), g.long(3), g.long(3), g.long(4), generator)


def _cached(g: DatasetGraph) -> Any:
    cache = g.add("AnonymousMemoryCache")[0]
    return g.data("RepeatDataset", g.data("CacheDatasetV2", g.range(3), b"", cache), g.long(2))


def _zipped(g: DatasetGraph) -> Any:
    inner = [g.range(3), with_function("MapDataset", "Mul", I64, 2)(g)]
    g.types, g.shapes = (I64, I64), (None, None)
    return g.data("ZipDataset", inner)


PIPELINES: dict[str, tuple[Build, int]] = {
    "range": (lambda g: g.range(3), 4),
    "map": (with_function("MapDataset", "Mul", I64, 2), 3),
    "filter": (with_function("FilterDataset", "Greater", DataType.BOOL, 2), 3),
    "shuffle": (_shuffled, 5),
    "cache": (_cached, 6),
    "zip": (_zipped, 3),
}  # fmt: skip


def _round_trip(name: str, build: Build, count: int, op: str, **attrs: Any) -> Case:
    def through_graph(g: DatasetGraph) -> Any:
        return g.add("DatasetFromGraph", g.add(op, build(g), **attrs)[0])[0]

    return iterated(f"{op}_{name}", through_graph, count)


def _stateful(name: str, op: str, says_so: bool = True, **attrs: Any) -> Case:
    """A function with a random number, which is state that a graph cannot contain."""
    g = DatasetGraph()
    dataset = with_function("MapDataset", "RandomUniformInt", I64, 3, Tout=I64, T=DataType.INT32)(g)
    g.graph_def.library.function[-1].node_def[0].input[:] = ["shape:output:0", "x0", "x1"]
    shape = g.graph_def.library.function[-1].node_def.add(name="shape", op="Const")
    shape.attr["dtype"].type = int(DataType.INT32)
    shape.attr["value"].tensor.dtype = int(DataType.INT32)
    shape.attr["value"].tensor.tensor_shape.dim.add(size=0)
    g.graph_def.library.function[-1].ret["y"] = "body:output:0"
    g.graph_def.library.function[-1].signature.is_stateful = says_so
    g.add(op, dataset, name="result", **attrs)
    return Case(name, g.graph_def, (Step({}, (), ("result",)),), message=True)


def _fingerprints() -> Case:
    g = DatasetGraph()
    builds = {"range": g.range(3), "same": g.range(3), "other": g.range(4)}
    builds["map"] = with_function("MapDataset", "Mul", I64, 2)(g)
    prints = {name: g.add("DatasetFingerprint", each)[0] for name, each in builds.items()}
    pairs = (("range", "same"), ("range", "other"), ("range", "map"))
    for one, other in pairs:
        g.add("Equal", prints[one], prints[other], name=f"{one}_{other}")
    steps = tuple(Step({}, (f"{one}_{other}:0",)) for one, other in pairs)
    return Case("fingerprints", g.graph_def, steps)


def _cardinality(options: bytes) -> Case:
    """The cardinality of a FlatMapDataset, which requires calls of its function."""
    g = DatasetGraph()
    attrs = {"output_types": (I64,), "output_shapes": ((),)}
    function = g.function("ranges", "RangeDataset", 3, DataType.VARIANT, **attrs)
    dataset = g.data("FlatMapDataset", g.range(3), [g.long(4), g.long(2)], f=function)
    g.add("DatasetCardinality", dataset, name="result", cardinality_options=options.decode())
    return Case(f"cardinality_{len(options)}", g.graph_def, (Step({}, ("result:0",)),))


def _plain_cardinality(name: str, build: Build) -> Case:
    """The cardinality of a dataset, computed without running it."""
    g = DatasetGraph()
    g.add("DatasetCardinality", build(g), name="result")
    return Case(f"cardinality_{name}", g.graph_def, (Step({}, ("result:0",)),))


def _unbatched_nothing(g: DatasetGraph) -> Any:
    batches = g.data("BatchDatasetV2", g.range(0), g.long(3), np.bool_(False))
    return g.data("UnbatchDataset", batches)


def _table(name: str, keys: np.ndarray, values: np.ndarray, key: DataType = STRING) -> Case:
    """Initialise a table from a dataset, and then again."""
    g = DatasetGraph()
    g.types, g.shapes = (STRING, I64), ((), ())
    pairs = g.data("TensorSliceDataset", [keys, values], Toutput_types=g.types, output_types=())
    attrs = {"key_dtype": key, "value_dtype": I64, "shared_name": "table"}
    table = g.add("HashTableV2", name="table", **attrs)[0]
    g.add("InitializeTableFromDataset", table, pairs, name="fill")
    g.add("LookupTableSizeV2", table, name="size")
    sought = np.array(["b", "z", "a"], object)
    g.add("LookupTableFindV2", table, sought, np.int64(-1), name="found", Tin=STRING, Tout=I64)
    steps = [Step({}, (), ("fill",)), Step({}, ("size:0",)), Step({}, ("found:0",))]
    return Case(f"table_{name}", g.graph_def, (*steps, *steps[:1]))


def _device_index() -> tuple[Case, ...]:
    cases = []
    for names in (("CPU", "GPU"), ("GPU", "CPU"), ("GPU",)):
        graph = Graph()
        graph.add("DeviceIndex", name="result", device_names=names)
        step = Step({}, ("result:0",))
        cases.append(Case(f"device_index_{'_'.join(names)}", graph.graph_def, (step,)))
    return tuple(cases)


def _options() -> Case:
    """Options of a pipeline with Options(deterministic=true), and of one without options."""
    g = DatasetGraph()
    first = g.data("OptionsDataset", g.range(2), serialized_options="\x08\x01")
    taken = g.data("TakeDataset", first, g.long(1))
    g.add("GetOptions", taken, name="once")
    g.add("GetOptions", g.range(2), name="never")
    steps = (Step({}, ("once:0",)), Step({}, ("never:0",)))
    return Case("options", g.graph_def, steps)


def _remote_call() -> Case:
    g = DatasetGraph()
    function = g.function("multiplied", "Mul", 2, I64)
    target = np.array(b"/job:localhost/replica:0/task:0/device:CPU:0", object)
    g.add("RemoteCall", target, [g.long(6), g.long(7)], f=function, Tout=(I64,), name="result")
    return Case("remote_call", g.graph_def, (Step({}, ("result:0",)),))


_WORDS = np.array(["a", "b"], object)
CASES = (
    *(
        _round_trip(name, build, count, "DatasetToGraphV2")
        for name, (build, count) in PIPELINES.items()
    ),
    _round_trip("map", PIPELINES["map"][0], 3, "DatasetToGraph"),
    _stateful("stateful_allowed", "DatasetToGraph", allow_stateful=True),
    _stateful("stateful_refused", "DatasetToGraph"),
    _stateful("stateful_unsaid", "DatasetToGraph", says_so=False),
    _stateful("stateful_refused_v2", "DatasetToGraphV2", external_state_policy=2),
    _fingerprints(),
    _cardinality(b""),
    _cardinality(_MODERATE),
    _plain_cardinality("unbatch_nothing", _unbatched_nothing),
    _plain_cardinality("endless_range", lambda g: g.range(2**63 - 1)),
    _table("words", _WORDS, np.array([5, 6])),
    _table("empty", _WORDS[:0], np.zeros(0, np.int64)),
    _table("same_twice", np.array(["a", "a"], object), np.array([5, 5])),
    _table("clash", np.array(["a", "a"], object), np.array([5, 6])),
    *_device_index(),
    _options(),
    _remote_call(),
)
