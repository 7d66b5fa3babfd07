"""Datasets of file records and file names; paths are relative to the repository's root."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Step
from tests.conformance.cases.data.datasets import DatasetGraph

FILES = "tests/conformance/files/"
PREFIX = "/tmp/runstep-conformance-records-"
STRING = DataType.STRING


def _strings(*values: str) -> np.ndarray:
    array = np.empty(len(values), object)
    array[:] = [value.encode() for value in values]
    return array


def _string(value: str) -> np.ndarray:
    return np.array(value.encode(), object)


def _dataset(name: str, op: str, count: int, *inputs: Any) -> Case:
    """Iterate over a dataset op of strings that has no attributes."""
    g = DatasetGraph()
    g.types, g.shapes = (STRING,), ((),)
    dataset = g.as_it_is(g.add(op, *inputs)[0])
    return Case(name, g.graph_def, _taken(g, dataset, count))


def _taken(g: DatasetGraph, dataset: Any, count: int) -> tuple[Step, ...]:
    """Start an iterator and get `count` elements."""
    attrs: dict[str, Any] = {"output_types": g.types, "output_shapes": g.shapes}
    iterator = g.add("IteratorV2", shared_name="it", container="", **attrs)[0]
    g.add("MakeIterator", dataset, iterator, name="start")
    g.add("IteratorGetNext", iterator, name="next", **attrs)
    return (Step({}, (), ("start",)), *[Step({}, ("next:0",))] * count)


def _records(name: str, file: str, compression: str, count: int, *offsets: int) -> Case:
    inputs = (
        _strings(FILES + file),
        _string(compression),
        np.int64(256),
        np.array(offsets, np.int64),
    )
    return _dataset(f"records_{name}", "TFRecordDatasetV2", count, *inputs)


def _fixed_length(name: str, count: int, *sizes: int, files: tuple[str, ...]) -> Case:
    """FixedLengthRecordDataset; `sizes` are those of header, record and footer in bytes."""
    paths = _strings(*(FILES + each for each in files))
    inputs = (paths, *map(np.int64, (*sizes, 256)))
    return _dataset(f"fixed_{name}", "FixedLengthRecordDataset", count, *inputs)


def _written(op: str, compression: str) -> Case:
    """Write strings to a file, then read its records."""
    name = f"{op}_{compression or 'plain'}"
    g = DatasetGraph()
    g.types, g.shapes = (STRING,), ((),)
    words = _strings("one", "", "three")
    dataset = g.data("TensorSliceDataset", [words], Toutput_types=g.types, output_types=())
    path = PREFIX + name
    g.add(op, dataset, _string(path), _string(compression), name="write")
    records = g.add("TFRecordDataset", _strings(path), _string(compression), np.int64(0))[0]
    steps = (Step({}, (), ("write",)), *_taken(g, records, 4))
    return Case(name, g.graph_def, steps)


CASES = (
    *(
        _dataset(f"{op}_{label}", op, count, _strings(*(FILES + each for each in patterns)))
        for op in ("MatchingFilesDataset", "ExperimentalMatchingFilesDataset")
        for label, count, patterns in (
            ("one", 3, ("w*.txt",)),
            ("two", 4, ("voc*.txt", "e*.txt")),
        )
    ),
    _records("plain", "records.tfrecord", "", 4),
    _records("gzip", "records.tfrecord.gz", "GZIP", 4),
    _records("zlib", "records.tfrecord.zz", "ZLIB", 4),
    _records("from_offset", "records.tfrecord", "", 4, 0),
    _fixed_length("whole", 3, 0, 13, 0, files=("vocabulary.txt",)),
    _fixed_length("framed", 7, 1, 5, 0, files=("vocabulary.txt", "with_duplicate.txt")),
    _fixed_length("single", 13, 2, 2, 2, files=("with_duplicate.txt", "vocabulary.txt")),
    _fixed_length("misfit", 1, 0, 4, 0, files=("with_duplicate.txt",)),
    *(
        _written(op, compression)
        for op in ("DatasetToTFRecord", "ExperimentalDatasetToTFRecord")
        for compression in ("", "GZIP")
    ),
)
