"""RecordInput: the records of many files in random order, each record once per epoch.

TF: tensorflow/core/kernels/record_input_op.cc, record_yielder.cc; their random order differs.
"""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterable, Iterator

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, NotFoundError
from runtime.foundation.running_task import check_task
from runtime.framework.attr_value import raw_bytes
from runtime.framework.io.record_files import tf_records
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.string_tensor import items_of, string_tensor
from runtime.kernels.io.files import matching_files

_COMPRESSIONS = ("", "ZLIB", "GZIP")


class RecordYielder:
    """An endless sequence of the records of files, shuffled through a buffer.

    Guarantees: thread-safe. An epoch returns each record once; the next epoch begins after all
    records of the previous one have been returned.
    """

    def __init__(
        self, pattern: str, compression_type: str, seed: int, shift_ratio: float, buffer_size: int
    ) -> None:
        self._pattern = string_tensor([raw_bytes(pattern)], ())
        self._compression = compression_type
        self._random = random.Random(seed)  # the order of records need not be secret
        self._shift_ratio = shift_ratio
        self._buffer_size = buffer_size
        self._lock = threading.Lock()  # guards the attributes below
        self._epoch = 0
        self._buffer: list[bytes] = []
        self._bytes = 0  # of the records in the buffer
        self._records: Iterator[bytes] = iter(())

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the bytes of the buffer."""
        return self._bytes, ()

    def take(self, context: OpKernelContext, count: int) -> list[bytes]:
        """Return the next `count` records.

        Raises NotFoundError if no file matches the pattern.
        """
        with self._lock:
            return [self._next(context) for _ in range(count)]

    def _next(self, context: OpKernelContext) -> bytes:
        check_task()
        while not self._fill():
            context.cancellation.check()
            self._begin_epoch(context)
        index = self._random.randrange(len(self._buffer))
        self._buffer[index], self._buffer[-1] = self._buffer[-1], self._buffer[index]
        record = self._buffer.pop()
        self._bytes -= sys.getsizeof(record)
        return record

    def _fill(self) -> bool:
        """Fill the buffer from the current epoch; return whether it has a record."""
        while len(self._buffer) < self._buffer_size:
            record = next(self._records, None)
            if record is None:
                break
            self._buffer.append(record)
            self._bytes += sys.getsizeof(record)
        return bool(self._buffer)

    def _begin_epoch(self, context: OpKernelContext) -> None:
        names = [
            item.decode("utf-8", "surrogateescape")
            for item in items_of(matching_files(context, self._pattern))
        ]
        if not names:
            raise NotFoundError(f"Found no files at {self._pattern.item().decode()!r}")
        for name in names:
            context.step.files.check_read(name)
        self._random.shuffle(names)
        shift = int(self._shift_ratio * self._epoch * len(names)) % len(names)
        self._epoch += 1
        self._records = self._read(names[shift:] + names[:shift])

    def _read(self, names: list[str]) -> Iterator[bytes]:
        for name in names:
            for _, record in tf_records(name, self._compression):
                yield record


def record_input(
    context: OpKernelContext,
    *,
    file_pattern: str,
    file_random_seed: int,
    file_shuffle_shift_ratio: float,
    file_buffer_size: int,
    file_parallelism: int,
    batch_size: int,
    compression_type: str,
) -> np.ndarray:
    """RecordInput: return the next `batch_size` records; the files are read one after another."""
    for name, value in (
        ("file_buffer_size", file_buffer_size),
        ("file_parallelism", file_parallelism),
        ("batch_size", batch_size),
    ):
        if value <= 0:
            raise InvalidArgumentError(f"{name} must be > 0, got {value}")
    if not 0 <= file_shuffle_shift_ratio <= 1:
        raise InvalidArgumentError(
            f"file_shuffle_shift_ratio must be within [0, 1], got {file_shuffle_shift_ratio}"
        )
    # As in TensorFlow, an unknown compression type means no compression.
    compression = compression_type if compression_type in _COMPRESSIONS else ""
    yielder: RecordYielder = context.kernel_state(
        lambda: RecordYielder(
            file_pattern,
            compression,
            file_random_seed,
            file_shuffle_shift_ratio,
            file_buffer_size,
        )
    )
    return string_tensor(yielder.take(context, batch_size))


KERNELS = (KernelDef("RecordInput", record_input),)
