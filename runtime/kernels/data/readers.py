"""Readers: ops that read records from files whose names come from a queue.

A read may have to wait for the next file name. Therefore the kernels that read are asynchronous and
return a Deferred.

TF: tensorflow/core/kernels/reader_ops.cc
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, UnimplementedError
from runtime.framework.dtypes import DataType
from runtime.framework.io.record_files import (
    Records,
    fixed_length_records,
    text_lines,
    tf_records,
    whole_file,
)
from runtime.framework.op_kernel import Deferred, Kernel, KernelDef, OpKernelContext
from runtime.framework.resource_manager import ResourceHandle
from runtime.framework.resource_op_kernel import resource_handle
from runtime.framework.resources.queues import Queue
from runtime.framework.resources.record_reader import Reader, Record
from runtime.framework.shapes import shape_text
from runtime.framework.string_tensor import as_strings, string_tensor
from runtime.kernels.data.queues import queue_of
from runtime.kernels.state.resource_variables import as_handle


def _reader_handle(
    context: OpKernelContext,
    container: str,
    shared_name: str,
    open_work: Callable[[str], Records],
    **options: bool,
) -> ResourceHandle:
    """Return the handle of the node's reader, which is created at the node's first run."""

    def create(_: str) -> Reader:
        title = f"{context.node.op.removesuffix('V2')} '{context.node.name}'"
        return Reader(title, open_work, **options)

    return resource_handle(context, container, shared_name, Reader, create)


def text_line_reader(
    context: OpKernelContext, *, skip_header_lines: int, container: str, shared_name: str
) -> ResourceHandle:
    """TextLineReader: return a handle of a reader whose records are lines of text."""
    open_work = functools.partial(text_lines, skip_header_lines=skip_header_lines)
    return _reader_handle(context, container, shared_name, open_work)


def fixed_length_record_reader(
    context: OpKernelContext,
    *,
    header_bytes: int,
    record_bytes: int,
    footer_bytes: int,
    hop_bytes: int,
    container: str,
    shared_name: str,
    encoding: str,
) -> ResourceHandle:
    """FixedLengthRecordReader: return a handle of a reader of records of equal length.

    Version 1 of the op has no attribute `encoding`, so that it always fails.
    """
    for name, value, least in (
        ("header_bytes", header_bytes, 0),
        ("record_bytes", record_bytes, 1),
        ("footer_bytes", footer_bytes, 0),
        ("hop_bytes", hop_bytes, 0),
    ):
        if value < least:
            raise InvalidArgumentError(f"{name} must be {'>' if least else '>='} 0 not {value}")
    open_work = functools.partial(
        fixed_length_records,
        header_bytes=header_bytes,
        record_bytes=record_bytes,
        footer_bytes=footer_bytes,
        hop_bytes=hop_bytes,
        encoding=encoding,
    )
    return _reader_handle(context, container, shared_name, open_work)


def tf_record_reader(
    context: OpKernelContext, *, container: str, shared_name: str, compression_type: str
) -> ResourceHandle:
    """TFRecordReader: return a handle of a reader of TFRecord files."""
    open_work = functools.partial(tf_records, compression_type=compression_type)
    return _reader_handle(context, container, shared_name, open_work)


def whole_file_reader(
    context: OpKernelContext, *, container: str, shared_name: str
) -> ResourceHandle:
    """WholeFileReader: return a handle of a reader whose records are whole files."""
    return _reader_handle(context, container, shared_name, whole_file, is_restorable=True)


def identity_reader(
    context: OpKernelContext, *, container: str, shared_name: str
) -> ResourceHandle:
    """IdentityReader: return a handle of a reader whose records are the file names themselves."""

    def name_itself(work: str) -> Records:
        yield "", work.encode("utf-8", "surrogateescape")

    return _reader_handle(
        context, container, shared_name, name_itself, reads_files=False, is_restorable=True
    )


KeysAndValues = tuple[np.ndarray, np.ndarray]


def _reader(context: OpKernelContext, handle: ResourceHandle) -> Reader:
    handle = as_handle(handle)
    return context.resources.look_up(handle.container, Reader, handle.name)


def _name_queue(context: OpKernelContext, handle: ResourceHandle) -> Queue:
    queue = queue_of(context, handle)
    if queue.component_types != (DataType.STRING,):
        types = ", ".join(each.tf_name for each in queue.component_types)
        raise InvalidArgumentError(
            f"The queue of a reader must hold one string, got components [{types}]"
        )
    return queue


def reader_read(
    context: OpKernelContext, reader_handle: ResourceHandle, queue_handle: ResourceHandle
) -> KeysAndValues | Deferred:
    """ReaderRead: return the key and the value of the next record."""

    def one(records: list[Record]) -> KeysAndValues:
        key, value = records[0]
        return string_tensor([key], ()), string_tensor([value], ())

    return _read(context, reader_handle, queue_handle, 1, one)


def reader_read_up_to(
    context: OpKernelContext,
    reader_handle: ResourceHandle,
    queue_handle: ResourceHandle,
    num_records: np.ndarray,
) -> KeysAndValues | Deferred:
    """ReaderReadUpTo: return the keys and values of up to `num_records` records of one file."""
    if np.size(num_records) != 1 or (count := np.asarray(num_records).item()) < 0:
        raise InvalidArgumentError(
            f"num_records must be one number that is not negative, got {num_records}"
        )

    def several(records: list[Record]) -> KeysAndValues:
        return string_tensor(key for key, _ in records), string_tensor(
            value for _, value in records
        )

    return _read(context, reader_handle, queue_handle, count, several)


def _read(
    context: OpKernelContext,
    reader_handle: ResourceHandle,
    queue_handle: ResourceHandle,
    count: int,
    outputs_of: Callable[[list[Record]], KeysAndValues],
) -> KeysAndValues | Deferred:
    reader, queue = _reader(context, reader_handle), _name_queue(context, queue_handle)
    if not count:  # in this case no file needs to be opened
        return outputs_of([])
    read = reader.read_up_to(count, queue, context.step.files, context.cancellation)
    outputs = Deferred()

    def settle(done: Deferred) -> None:
        if done.error is not None:
            outputs.set_error(done.error)
        else:
            outputs.set_value(outputs_of(done.value))

    read.when_done(settle)
    return outputs


def reader_num_records_produced(
    context: OpKernelContext, reader_handle: ResourceHandle
) -> np.ndarray:
    """ReaderNumRecordsProduced: return the number of records read since the last reset."""
    return np.array(_reader(context, reader_handle).num_records_produced, np.int64)


def reader_num_work_units_completed(
    context: OpKernelContext, reader_handle: ResourceHandle
) -> np.ndarray:
    """ReaderNumWorkUnitsCompleted: return the number of files read to their end.

    Files are counted from the last reset on.
    """
    return np.array(_reader(context, reader_handle).num_work_units_completed, np.int64)


def reader_reset(context: OpKernelContext, reader_handle: ResourceHandle) -> None:
    """ReaderReset: discard the current file and set the counts to 0."""
    _reader(context, reader_handle).reset()


def reader_serialize_state(context: OpKernelContext, reader_handle: ResourceHandle) -> np.ndarray:
    """ReaderSerializeState: return the reader's state as bytes.

    Raises UnimplementedError if the reader is of a kind that may find several records in a file.
    """
    reader = _reader(context, reader_handle)
    if not reader.is_restorable:
        raise UnimplementedError("Reader SerializeState")
    return string_tensor([reader.serialize_state()], ())


def reader_restore_state(
    context: OpKernelContext, reader_handle: ResourceHandle, state: np.ndarray
) -> None:
    """ReaderRestoreState: continue from a state that ReaderSerializeState returned."""
    reader, text = _reader(context, reader_handle), as_strings(state)
    if text.ndim:
        raise InvalidArgumentError(
            f"Reader state must be scalar, but had shape: {shape_text(text.shape)}"
        )
    if not reader.is_restorable:
        raise UnimplementedError("Reader RestoreState")
    reader.restore_state(text.item())


_READERS: dict[str, Kernel] = {
    "FixedLengthRecordReader": fixed_length_record_reader,
    "IdentityReader": identity_reader,
    "TFRecordReader": tf_record_reader,
    "TextLineReader": text_line_reader,
    "WholeFileReader": whole_file_reader,
}
_ASYNCHRONOUS_OPS: dict[str, Kernel] = {
    "ReaderRead": reader_read,
    "ReaderReadUpTo": reader_read_up_to,
}
_SYNCHRONOUS_OPS: dict[str, Kernel] = {
    "ReaderNumRecordsProduced": reader_num_records_produced,
    "ReaderNumWorkUnitsCompleted": reader_num_work_units_completed,
    "ReaderReset": reader_reset,
    "ReaderRestoreState": reader_restore_state,
    "ReaderSerializeState": reader_serialize_state,
}
_VERSIONS = ("", "V2")

KERNELS = (
    *(KernelDef(op + v, make) for op, make in _READERS.items() for v in _VERSIONS),
    *(
        KernelDef(op + v, read, asynchronous=True)
        for op, read in _ASYNCHRONOUS_OPS.items()
        for v in _VERSIONS
    ),
    *(KernelDef(op + v, do) for op, do in _SYNCHRONOUS_OPS.items() for v in _VERSIONS),
)
