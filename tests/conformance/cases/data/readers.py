"""Readers of files named in a queue; file names are relative to the root of the repository."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step, from_producer

FILES = "tests/conformance/files/"


def restored_case(op: str, state: bytes) -> Case:
    """Read the last file, serialize the state, restore `state`, then read and serialize again."""
    graph = Graph()
    queue = graph.add("FIFOQueueV2", name="queue", component_types=(DataType.STRING,))[0]
    file = np.array(FILES + "vocabulary.txt", object)
    graph.add("QueueEnqueueV2", queue, [file], name="enqueue")
    reader = graph.add(op, name="reader", shared_name="reader")[0]
    read = graph.add("ReaderReadV2", reader, queue, name="result")
    counts = (
        graph.add("ReaderNumRecordsProducedV2", reader)[0][0],
        graph.add("ReaderNumWorkUnitsCompletedV2", reader)[0][0],
    )
    stored = graph.add("ReaderSerializeStateV2", reader, name="stored")[0][0]
    graph.add("ReaderRestoreStateV2", reader, np.array(state, object), name="restore")
    steps = (
        Step({}, (), ("enqueue",)), Step({}, tuple(each for each, _ in read)), Step({}, counts),
        Step({}, (stored,)), Step({}, (), ("restore",)), Step({}, counts), Step({}, (stored,)),
        Step({}, (), ("enqueue",)), Step({}, tuple(each for each, _ in read)), Step({}, counts),
    )  # fmt: skip
    # In its message about a state that it can parse TensorFlow prints random spaces.
    message = not state.startswith(b"\x08")
    return Case(f"restored_{op}_{state.hex()}", graph.graph_def, steps, message=message)


def reader_case(
    name: str,
    op: str,
    files: Sequence[str],
    reads: int,
    up_to: int = 0,
    state: bool = False,
    **attrs: Any,
) -> Case:
    """Enqueue file names, close the queue, read `reads` times, fetch the counts, reset.

    Version 1 of the readers is used with version 1 of the queues.
    """
    v = "V2" if op.endswith("V2") else ""
    graph = Graph()
    queue = graph.add(f"FIFOQueue{v}", name="queue", component_types=(DataType.STRING,))[0]
    names = np.array([FILES + file for file in files], object)
    graph.add(f"QueueEnqueueMany{v}", queue, [names], name="enqueue")
    graph.add(f"QueueClose{v}", queue, name="close")
    reader = graph.add(op, name="reader", shared_name="reader", **attrs)[0]
    if up_to:
        read = graph.add(f"ReaderReadUpTo{v}", reader, queue, np.int64(up_to), name="result")
    else:
        read = graph.add(f"ReaderRead{v}", reader, queue, name="result")
    counts = (
        graph.add(f"ReaderNumRecordsProduced{v}", reader)[0][0],
        graph.add(f"ReaderNumWorkUnitsCompleted{v}", reader)[0][0],
    )
    graph.add(f"ReaderReset{v}", reader, name="reset")
    steps = [Step({}, (), ("enqueue",)), Step({}, (), ("close",))]
    steps += [Step({}, tuple(each for each, _ in read)) for _ in range(reads)]
    steps += [Step({}, counts), Step({}, (), ("reset",)), Step({}, counts)]
    if state:
        stored = graph.add(f"ReaderSerializeState{v}", reader, name="stored")[0]
        graph.add(
            f"ReaderRestoreState{v}",
            reader,
            np.array(b"\x08\x03\x10\x03\x18\x05", object),
            name="restore",
        )
        steps += [Step({}, (stored[0],)), Step({}, (), ("restore",)), Step({}, counts)]
        steps += [Step({}, (stored[0],))]
    made = Case(f"{name}_{op}", graph.graph_def, tuple(steps))
    return made if v else from_producer(25, made)  # graphs of later versions reject version 1


STATES = (
    b"", b"\x08\x01\x10\x01\x18\x01\x22\x01a", b"\x08\x01\x10\x02", b"\x2a\x01a", b"\x2d1234",
    b"-1", b"\x00x", b"a", b"\x08", b"\xff'", b"\x08\x01\x22\x02a\xff",
    b"\x08" + b"\xff" * 9 + b"\x01",
)  # fmt: skip


def _several_names_at_once() -> Case:
    """A read fails on an element of several file names; the next read takes the next element."""
    graph = Graph()
    queue = graph.add("FIFOQueueV2", name="queue", component_types=(DataType.STRING,))[0]
    names = graph.placeholder(DataType.STRING, "names")
    graph.add("QueueEnqueueV2", queue, [names], name="enqueue")
    reader = graph.add("IdentityReaderV2", name="reader")[0]
    graph.add("ReaderReadV2", reader, queue, name="read")
    fed = [np.array(each, object) for each in ([b"a", b"b"], [b"c"])]
    steps = [Step({"names:0": each}, (), ("enqueue",)) for each in fed]
    steps += [Step({}, ("read:0", "read:1"))] * 2
    return Case("several_names_at_once", graph.graph_def, tuple(steps), message=True)


def _numbers_of_records() -> Case:
    """A count of 0 reads nothing without waiting; a vector of one number is accepted."""
    graph = Graph()
    queue = graph.add("FIFOQueueV2", name="queue", component_types=(DataType.STRING,))[0]
    graph.add("QueueEnqueueV2", queue, [np.array(b"a", object)], name="enqueue")
    reader = graph.add("IdentityReaderV2", name="reader")[0]
    number = graph.placeholder(DataType.INT64, "number")
    graph.add("ReaderReadUpToV2", reader, queue, number, name="read")
    graph.add("QueueSizeV2", queue, name="size")
    reads = [
        Step({"number:0": np.array(each, np.int64)}, ("read:0", "read:1")) for each in (0, [0], [1])
    ]
    steps = (reads[0], Step({}, (), ("enqueue",)), *reads, Step({}, ("size:0",)))
    return Case("numbers_of_records", graph.graph_def, steps, message=True)


CASES = (
    _several_names_at_once(),
    _numbers_of_records(),
    *(restored_case("IdentityReaderV2", state) for state in STATES),
    restored_case("WholeFileReaderV2", STATES[1]),
    reader_case("lines", "TextLineReaderV2", ["vocabulary.txt", "with_empty_line.txt"], 9),
    reader_case("ends", "TextLineReaderV2", ["carriage_returns.txt"], 4),
    reader_case("header", "TextLineReaderV2", ["vocabulary.txt"], 3, skip_header_lines=1),
    reader_case(
        "several", "TextLineReaderV2", ["vocabulary.txt", "with_duplicate.txt"], 5, up_to=2
    ),
    reader_case("missing", "TextLineReaderV2", ["missing.txt", "vocabulary.txt"], 2),
    reader_case("state", "TextLineReaderV2", ["vocabulary.txt"], 1, state=True),
    reader_case("whole", "WholeFileReaderV2", ["vocabulary.txt", "empty.txt"], 3, state=True),
    reader_case("names", "IdentityReaderV2", ["a", "b"], 3, state=True),
    reader_case("several", "IdentityReaderV2", ["a", "b", "c"], 3, up_to=2),
    reader_case("lines", "TextLineReader", ["vocabulary.txt"], 4),
    reader_case("several", "TextLineReader", ["vocabulary.txt"], 3, up_to=2),
    reader_case("whole", "WholeFileReader", ["vocabulary.txt"], 2, state=True),
    reader_case("names", "IdentityReader", ["a", "b"], 3, state=True),
    reader_case("several", "IdentityReader", ["a", "b", "c"], 3, up_to=2),
    reader_case("records", "FixedLengthRecordReader", ["vocabulary.txt"], 6, record_bytes=5),
    reader_case("records", "TFRecordReader", ["records.tfrecord"], 4),
    reader_case("records", "FixedLengthRecordReaderV2", ["vocabulary.txt"], 6, record_bytes=5),
    reader_case(
        "framed",
        "FixedLengthRecordReaderV2",
        ["vocabulary.txt", "with_duplicate.txt"],
        6,
        record_bytes=4,
        header_bytes=2,
        footer_bytes=3,
        hop_bytes=6,
    ),
    reader_case(
        "overlapping",
        "FixedLengthRecordReaderV2",
        ["with_duplicate.txt"],
        6,
        record_bytes=4,
        hop_bytes=1,
    ),
    reader_case("records", "TFRecordReaderV2", ["records.tfrecord"], 4),
    reader_case("gzip", "TFRecordReaderV2", ["records.tfrecord.gz"], 4, compression_type="GZIP"),
    reader_case("zlib", "TFRecordReaderV2", ["records.tfrecord.zz"], 4, compression_type="ZLIB"),
    reader_case("cut", "TFRecordReaderV2", ["cut.tfrecord"], 3),
    reader_case("damaged", "TFRecordReaderV2", ["damaged.tfrecord"], 3),
)
