"""Datasets that are saved and loaded again.

The cases write small files under /tmp, each with its own name.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import protos as pb
from runtime.framework.attr_value import NameAttrList
from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Step
from tests.conformance.cases.data.datasets import DatasetGraph

PREFIX = "/tmp/runstep-conformance-dataset-"
I64, VARIANT, STRING = DataType.INT64, DataType.VARIANT, DataType.STRING
# A function that reads one shard after the other.
_INTERLEAVED = NameAttrList("joined_shards")


def _path(name: str) -> np.ndarray:
    return np.array(f"{PREFIX}{name}".encode(), object)


def identity(name: str, output: str, data_type: DataType) -> pb.FunctionDef:
    definition = pb.FunctionDef(ret={"y": "x"})
    definition.signature.name = name
    definition.signature.input_arg.add(name="x", type=int(data_type))
    definition.signature.output_arg.add(name=output, type=int(data_type))
    return definition


def _joined() -> list[pb.FunctionDef]:
    """Functions for a FlatMapDataset over the shards, which returns each shard unchanged."""
    inner = identity("shard_itself", "y", VARIANT)
    outer = pb.FunctionDef(ret={"y": "flat:handle:0"})
    outer.signature.name = _INTERLEAVED.name
    outer.signature.input_arg.add(name="x", type=int(VARIANT))
    outer.signature.output_arg.add(name="y", type=int(VARIANT))
    node = outer.node_def.add(name="flat", op="FlatMapDataset", input=["x"])
    node.attr["f"].func.name = "shard_itself"
    node.attr["Targuments"].list.SetInParent()
    node.attr["output_types"].list.type.append(int(I64))
    node.attr["output_shapes"].list.shape.add()
    return [inner, outer]


def _graph() -> DatasetGraph:
    g = DatasetGraph()
    g.shapes = ((),)
    g.graph_def.library.function.extend([*_joined(), identity("shard_of_element", "y", I64)])
    return g


def _load(g: DatasetGraph, path: np.ndarray, compression: str) -> Any:
    return g.data("LoadDataset", path, [], compression=compression, reader_func=_INTERLEAVED)


def _taken(g: DatasetGraph, dataset: Any, name: str) -> list[Step]:
    """Request four elements of a dataset of three, so that the last is the end."""
    attrs = {"output_types": g.types, "output_shapes": g.shapes}
    iterator = g.add("IteratorV2", shared_name=name, container="", **attrs)[0]
    g.add("MakeIterator", dataset, iterator, name=f"start_{name}")
    g.add("IteratorGetNext", iterator, name=f"next_{name}", **attrs)
    return [Step({}, (), (f"start_{name}",)), *[Step({}, (f"next_{name}:0",))] * 4]


def _saved(compression: str, in_shards: bool) -> Case:
    name = f"save_{compression or 'plain'}_{int(in_shards)}"
    g = _graph()
    options = {"compression": compression, "use_shard_func": in_shards}
    function = NameAttrList("shard_of_element")
    g.add("SaveDataset", g.range(3), _path(name), [], name="save", shard_func=function, **options)
    loaded = _load(g, _path(name), compression)
    g.add("DatasetCardinality", loaded, name="count")
    steps = [Step({}, (), ("save",)), Step({}, ("count:0",)), *_taken(g, loaded, "loaded")]
    return Case(name, g.graph_def, tuple(steps))


def _saved_on_the_way() -> Case:
    name = "save_v2"
    g = _graph()
    function = NameAttrList("shard_of_element")
    dataset = g.data(
        "SaveDatasetV2", g.range(3), _path(name), [], shard_func=function, use_shard_func=False
    )
    steps = _taken(g, dataset, "saved") + _taken(g, _load(g, _path(name), ""), "loaded")
    return Case(name, g.graph_def, tuple(steps))


def _missing() -> Case:
    g = _graph()
    g.add("DatasetCardinality", _load(g, _path("missing"), ""), name="count")
    return Case("load_missing", g.graph_def, (Step({}, ("count:0",)),), message=True)


def _snapshot(compression: str) -> Case:
    """Two passes: the second reads the snapshot that the first wrote."""
    name = f"snapshot_{compression or 'plain'}"
    g = _graph()
    dataset = g.data(
        "SnapshotDatasetV2", g.range(3), _path(name), [], [], compression=compression,
        reader_func=_INTERLEAVED, shard_func=NameAttrList("shard_of_element"), hash_valid=True,
        hash=7,
    )  # fmt: skip
    steps = _taken(g, dataset, "first") + _taken(g, dataset, "second")
    return Case(name, g.graph_def, tuple(steps))


def _stored_file(g: DatasetGraph, name: str) -> Any:
    """The first file of the first shard of the dataset saved under `name`."""
    pattern = _path(f"{name}/*/00000000.shard/00000000.snapshot")
    return g.add("GatherV2", g.add("MatchingFiles", pattern)[0], np.int32(0), np.int32(0))[0]


def _parts(op: str, compression: str) -> Case:
    """A saved dataset, read by the ops on which the other readers are built."""
    name = f"{op}_{compression or 'plain'}"
    g = _graph()
    g.add(
        "SaveDataset", g.range(3), _path(name), [], name="save", compression=compression,
        shard_func=NameAttrList("shard_of_element"), use_shard_func=False,
    )  # fmt: skip
    if op == "SnapshotChunkDataset":
        dataset = g.data(op, _stored_file(g, name), compression=compression)
    else:
        folder = g.add("StaticRegexReplace", _stored_file(g, name), pattern="/[^/]*$", rewrite="")
        options = {"compression": compression, "version": 2}
        dataset = g.data(op, *folder, g.long(1), **options)
    taken = _taken(g, g.as_it_is(dataset), "read")
    return Case(name, g.graph_def, (Step({}, (), ("save",)), *taken, *taken[1:]))


def _legacy(name: str, count: int = 3, **options: Any) -> Case:
    """Two passes of SnapshotDataset: the second reads what the first wrote."""
    g = _graph()
    dataset = g.data(
        "SnapshotDataset", g.range(count), _path(name), **{"snapshot_name": "run", **options}
    )
    g.add("DatasetCardinality", dataset, name="count")
    steps = _taken(g, dataset, "first") + _taken(g, dataset, "second")
    return Case(name, g.graph_def, (*steps, Step({}, ("count:0",))), message=True)


def _legacy_of_tensorflow(name: str, types: tuple[DataType, ...], count: int = 4) -> Case:
    """A snapshot that TensorFlow wrote, read without its pipeline."""
    g = _graph()
    g.types, g.shapes = types, tuple(None for _ in types)
    values = [np.zeros((), each.numpy) for each in types]
    source = g.data("TensorDataset", values, Toutput_types=types, output_types=())
    compression = "" if name == "plain" else name.upper()
    dataset = g.data(
        "SnapshotDataset", source, np.array(b"tests/conformance/files/snapshots", object),
        mode="read", compression=compression, snapshot_name=name,
    )  # fmt: skip
    attrs = {"output_types": g.types, "output_shapes": g.shapes}
    iterator = g.add("IteratorV2", shared_name="it", container="", **attrs)[0]
    g.add("MakeIterator", dataset, iterator, name="start")
    outputs = g.add("IteratorGetNext", iterator, name="next", **attrs)
    steps = [Step({}, (), ("start",)), *[Step({}, tuple(each for each, _ in outputs))] * count]
    return Case(f"legacy_{name}_{len(types)}", g.graph_def, tuple(steps), message=True)


def _legacy_shard(name: str, version: int) -> Case:
    """A file of TensorFlow's older format, read by the op for a shard of the newer."""
    g = _graph()
    g.types, g.shapes = _STORED_TYPES, tuple(None for _ in _STORED_TYPES)
    folder = np.array(f"tests/conformance/files/snapshots/custom-{name}/custom".encode(), object)
    dataset = g.data(
        "SnapshotDatasetReader", folder, g.long(1), version=version,
        compression="" if name == "plain" else name.upper(),
    )  # fmt: skip
    attrs = {"output_types": g.types, "output_shapes": g.shapes}
    iterator = g.add("IteratorV2", shared_name="it", container="", **attrs)[0]
    g.add("MakeIterator", g.as_it_is(dataset), iterator, name="start")
    outputs = g.add("IteratorGetNext", iterator, name="next", **attrs)
    steps = [Step({}, (), ("start",)), *[Step({}, tuple(each for each, _ in outputs))] * 3]
    return Case(f"legacy_shard_{name}_{version}", g.graph_def, tuple(steps))


_STORED_TYPES = (I64, STRING, DataType.FLOAT, DataType.BOOL, DataType.BFLOAT16, STRING)
_STORED = ("plain", "gzip", "snappy")

CASES = (
    *(
        _saved(compression, in_shards)
        for compression in ("", "GZIP", "SNAPPY")
        for in_shards in (False, True)
    ),
    _saved_on_the_way(),
    _missing(),
    *(_snapshot(compression) for compression in ("", "GZIP", "AUTO")),
    *(
        _parts(op, compression)
        for op in ("SnapshotChunkDataset", "SnapshotDatasetReader")
        for compression in ("", "GZIP")
    ),
    *(_legacy(f"legacy_{each or 'plain'}", compression=each) for each in ("", "GZIP", "SNAPPY")),
    *(_legacy(f"legacy_{mode}", mode=mode) for mode in ("write", "passthrough")),
    _legacy("legacy_missing", mode="read", snapshot_name="none"),
    _legacy("legacy_hashed", snapshot_name=""),
    _legacy("legacy_in_shards", shard_size_bytes=8),
    _legacy("legacy_pending", count=9),
    _legacy("legacy_expiring", pending_snapshot_expiry_seconds=-1, shard_size_bytes=-1),
    _legacy("legacy_mode", mode="other"),
    _legacy("legacy_compression", compression="AUTO"),
    _legacy("legacy_expired", pending_snapshot_expiry_seconds=0),
    *(_legacy_of_tensorflow(name, _STORED_TYPES) for name in _STORED),
    _legacy_of_tensorflow("plain", (I64, STRING), 1),
    _legacy_of_tensorflow("snappy", (I64, STRING, *_STORED_TYPES[1:4]), 1),
    *(_legacy_shard(name, 1) for name in _STORED),
    _legacy_shard("plain", 0),
    _legacy_shard("plain", 3),
)
