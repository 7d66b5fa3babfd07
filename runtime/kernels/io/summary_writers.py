"""Kernels of the summary writer ops, which append events to files that TensorBoard reads.

TF: tensorflow/core/kernels/summary_kernels.cc, tensorflow/core/summary/summary_file_writer.cc
"""

from __future__ import annotations

import itertools
import logging
import os
import pathlib
import socket
import threading
import time
import weakref
from collections.abc import Iterable
from typing import IO, Any

import numpy as np
from google.protobuf.message import DecodeError

import protos as pb
from runtime.foundation.errors import DataLossError, FailedPreconditionError, OpError
from runtime.framework.attr_value import text
from runtime.framework.data.dataset import scalar_argument
from runtime.framework.dtypes import DataType
from runtime.framework.io.file_errors import file_error
from runtime.framework.io.new_files import append
from runtime.framework.io.record_writer import framed
from runtime.framework.op_kernel import FileGate, KernelDef, OpKernelContext
from runtime.framework.resource_manager import DEFAULT_CONTAINER, Resource, ResourceHandle
from runtime.framework.string_tensor import scalar_string
from runtime.kernels.io.files import file_name
from runtime.kernels.io.image_summaries import image_summary
from runtime.kernels.io.summaries import (
    audio_summary_v2,
    histogram_summary,
    scalar_summary,
    tensor_summary_v2,
)
from runtime.kernels.state.resource_variables import as_handle

_log = logging.getLogger(__name__)

_FILE_VERSION = "brain.Event:2"
_numbers = itertools.count()  # numbers for the names of event files; next() is atomic


class SummaryFileWriter(Resource):
    """Appends events to one file.

    Guarantees: thread-safe. `write` flushes the file if more than `max_queue` events are unflushed
    or `flush_millis` have passed since the last flush. If the system refuses to write, the
    unflushed events are lost and the file still ends with a whole event.
    """

    type_name = "N10tensorflow22SummaryWriterInterfaceE"

    def __init__(
        self, folder: str, max_queue: int, flush_millis: int, suffix: str, files: FileGate
    ) -> None:
        now = time.time()
        name = f"events.out.tfevents.{int(now):010}.{socket.gethostname()}.{os.getpid()}"
        path = os.path.join(folder, f"{name}.{next(_numbers)}{suffix}")
        files.check_write(path)
        self._max_queue = max_queue
        self._flush_seconds = flush_millis / 1000
        self._lock = threading.Lock()  # held while the attributes below are read or written
        self._unflushed = 0
        self._flushed_at = time.monotonic()
        self._events = _EventFile(folder, path)
        weakref.finalize(self, self._events.close_quietly)
        source = pb.SourceMetadata(writer="tensorflow.core.util.events_writer")
        first = pb.Event(wall_time=now, file_version=_FILE_VERSION, source_metadata=source)
        try:
            self.write(first.SerializeToString(deterministic=True))
            self.flush()
        except OpError:
            os.unlink(path)  # a file without its version is no event file
            raise

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the bytes of the events that are not in the file yet."""
        return self._events.pending_bytes, ()

    def write(self, event: bytes) -> None:
        """Append one serialized Event."""
        with self._lock:
            self._events.add(framed(event))
            self._unflushed += 1
            is_due = time.monotonic() - self._flushed_at >= self._flush_seconds
            if self._unflushed > self._max_queue or is_due:
                self._flush()

    def _flush(self) -> None:
        self._unflushed = 0
        self._flushed_at = time.monotonic()
        self._events.flush()

    def flush(self) -> None:
        """Pass all events written so far to the operating system."""
        with self._lock:
            self._flush()

    def close(self) -> None:
        """Flush and close the file; nothing can be written later."""
        with self._lock:
            self._events.close()


class _EventFile:
    """A file and the events that are to be appended to it; not thread-safe."""

    def __init__(self, folder: str, path: str) -> None:
        self._path = path
        self._pending = bytearray()
        try:
            os.makedirs(folder, exist_ok=True)
            # Closed by `close`; unbuffered, because `append` writes whole events or nothing.
            self._file: IO[bytes] = pathlib.Path(path).open("ab", buffering=0)  # noqa: SIM115
        except OSError as error:
            raise file_error(error, path) from None

    @property
    def pending_bytes(self) -> int:
        return len(self._pending)

    def add(self, event: bytes) -> None:
        if self._file.closed:
            raise FailedPreconditionError(f"{self._path} is closed")
        self._pending += event

    def flush(self) -> None:
        pending, self._pending = self._pending, bytearray()
        if pending and not self._file.closed:
            append(self._file, self._path, pending)

    def close(self) -> None:
        if not self._file.closed:
            with self._file:
                self.flush()

    def close_quietly(self) -> None:
        try:
            self.close()
        except OpError as error:
            _log.error("Events are lost: %s", error.message)


def summary_writer(context: OpKernelContext, *, shared_name: str, container: str) -> ResourceHandle:
    """SummaryWriter: return the handle of a writer, which CreateSummaryFileWriter creates."""
    name = shared_name or context.node.name
    return ResourceHandle(container or DEFAULT_CONTAINER, name, SummaryFileWriter.type_name)


def create_summary_file_writer(
    context: OpKernelContext,
    writer: ResourceHandle,
    logdir: np.ndarray,
    max_queue: np.ndarray,
    flush_millis: np.ndarray,
    filename_suffix: np.ndarray,
) -> None:
    """CreateSummaryFileWriter: create the writer with a file in `logdir`.

    The op does nothing if the writer exists.
    """
    handle, folder = as_handle(writer), file_name(logdir, "`logdir`")
    context.resources.look_up_or_create(
        handle.container,
        SummaryFileWriter,
        handle.name,
        lambda: SummaryFileWriter(
            folder,
            int(scalar_argument(max_queue, "max_queue")),
            int(scalar_argument(flush_millis, "flush_millis")),
            text(scalar_string(filename_suffix)),
            context.step.files,
        ),
    )


def _writer(context: OpKernelContext, handle: ResourceHandle) -> SummaryFileWriter:
    handle = as_handle(handle)
    return context.resources.look_up(handle.container, SummaryFileWriter, handle.name)


def flush_summary_writer(context: OpKernelContext, writer: ResourceHandle) -> None:
    """FlushSummaryWriter: pass all events written so far to the operating system."""
    _writer(context, writer).flush()


def close_summary_writer(context: OpKernelContext, writer: ResourceHandle) -> None:
    """CloseSummaryWriter: close the file and remove the writer."""
    handle, resource = as_handle(writer), _writer(context, writer)
    context.resources.delete(handle.container, SummaryFileWriter.type_name, handle.name)
    resource.close()


def _write(context: OpKernelContext, writer: ResourceHandle, step: np.ndarray, **what: Any) -> None:
    event = pb.Event(wall_time=time.time(), step=int(scalar_argument(step, "step")), **what)
    _writer(context, writer).write(event.SerializeToString(deterministic=True))


def _write_summary(
    context: OpKernelContext, writer: ResourceHandle, step: np.ndarray, serialized: np.ndarray
) -> None:
    try:
        summary = pb.Summary.FromString(scalar_string(serialized))
    except DecodeError:
        raise DataLossError(
            "Bad tf.compat.v1.Summary binary proto tensor string at index 0"
        ) from None
    _write(context, writer, step, summary=summary)


def write_summary(
    context: OpKernelContext,
    writer: ResourceHandle,
    step: np.ndarray,
    tensor: np.ndarray,
    tag: np.ndarray,
    summary_metadata: np.ndarray,
    *,
    T: DataType,  # noqa: N803
) -> None:
    """WriteSummary: write `tensor` under `tag`."""
    serialized = tensor_summary_v2(tag, tensor, summary_metadata, T=T)
    summary = pb.Summary.FromString(scalar_string(serialized))
    if not scalar_string(summary_metadata):
        summary.value[0].ClearField("metadata")
    _write(context, writer, step, summary=summary)


def write_raw_proto_summary(
    context: OpKernelContext, writer: ResourceHandle, step: np.ndarray, tensor: np.ndarray
) -> None:
    """WriteRawProtoSummary: write `tensor`, a serialized Summary."""
    _write_summary(context, writer, step, tensor)


def write_scalar_summary(
    context: OpKernelContext,
    writer: ResourceHandle,
    step: np.ndarray,
    tag: np.ndarray,
    value: np.ndarray,
) -> None:
    """WriteScalarSummary: write the number `value` under `tag`."""
    _write_summary(context, writer, step, scalar_summary(tag, np.asarray(value)))


def write_histogram_summary(
    context: OpKernelContext,
    writer: ResourceHandle,
    step: np.ndarray,
    tag: np.ndarray,
    values: np.ndarray,
) -> None:
    """WriteHistogramSummary: write a histogram of `values` under `tag`."""
    _write_summary(context, writer, step, histogram_summary(context, tag, values))


def write_image_summary(
    context: OpKernelContext,
    writer: ResourceHandle,
    step: np.ndarray,
    tag: np.ndarray,
    tensor: np.ndarray,
    bad_color: np.ndarray,
    *,
    max_images: int,
) -> None:
    """WriteImageSummary: write the first `max_images` images of a batch under `tag`."""
    pictures = image_summary(tag, tensor, max_images=max_images, bad_color=np.asarray(bad_color))
    _write_summary(context, writer, step, pictures)


def write_audio_summary(
    context: OpKernelContext,
    writer: ResourceHandle,
    step: np.ndarray,
    tag: np.ndarray,
    tensor: np.ndarray,
    sample_rate: np.ndarray,
    *,
    max_outputs: int,
) -> None:
    """WriteAudioSummary: write the first `max_outputs` clips of a batch under `tag`."""
    clips = audio_summary_v2(tag, tensor, sample_rate, max_outputs=max_outputs)
    _write_summary(context, writer, step, clips)


def write_graph_summary(
    context: OpKernelContext, writer: ResourceHandle, step: np.ndarray, tensor: np.ndarray
) -> None:
    """WriteGraphSummary: write `tensor`, a serialized GraphDef."""
    _write(context, writer, step, graph_def=scalar_string(tensor))


def import_event(context: OpKernelContext, writer: ResourceHandle, event: np.ndarray) -> None:
    """ImportEvent: write `event`, a serialized Event."""
    serialized = scalar_string(event)
    try:
        pb.Event.FromString(serialized)
    except DecodeError:
        raise DataLossError("Bad tf.Event binary proto tensor string") from None
    _writer(context, writer).write(serialized)


KERNELS = (
    KernelDef("CloseSummaryWriter", close_summary_writer),
    KernelDef("CreateSummaryFileWriter", create_summary_file_writer),
    KernelDef("FlushSummaryWriter", flush_summary_writer),
    KernelDef("ImportEvent", import_event),
    KernelDef("SummaryWriter", summary_writer),
    KernelDef("WriteAudioSummary", write_audio_summary),
    KernelDef("WriteGraphSummary", write_graph_summary),
    KernelDef("WriteHistogramSummary", write_histogram_summary),
    KernelDef("WriteImageSummary", write_image_summary),
    KernelDef("WriteRawProtoSummary", write_raw_proto_summary),
    KernelDef("WriteScalarSummary", write_scalar_summary),
    KernelDef("WriteSummary", write_summary),
)
