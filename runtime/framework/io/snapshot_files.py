"""Read and write snapshots: the saved elements of a dataset.

A snapshot is a folder of TFRecord files, with a subfolder for each run and, in it, for each shard:

    <path>/snapshot.metadata
    <path>/<run>/00000000.shard/00000000.snapshot

A record is one component of an element, stored as a serialized TensorProto. A shard gets a new file
after each checkpoint of the iterator that writes the shard.

TF: tensorflow/core/data/snapshot_utils.cc
"""

from __future__ import annotations

import gzip
import os
import pathlib
import secrets
import time
from collections.abc import Iterator, Sequence
from typing import IO

import numpy as np
from google.protobuf.message import DecodeError

import protos as pb
from runtime.foundation.errors import (
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
)
from runtime.framework.allocation import tensor_limit
from runtime.framework.data.dataset import Element
from runtime.framework.dtypes import DataType
from runtime.framework.io.file_errors import file_error
from runtime.framework.io.new_files import NewFile
from runtime.framework.io.record_files import tf_records
from runtime.framework.io.record_writer import framed
from runtime.framework.io.snappy import compress_framed
from runtime.framework.io.snapshot_record_files import read_record_file
from runtime.framework.op_kernel import FileGate
from runtime.framework.tensor_codec import tensor_from_proto, tensor_to_proto
from runtime.framework.tensor_value import TensorValue
from runtime.framework.variant_codec import variants_from_proto, variants_to_proto

METADATA_FILE = "snapshot.metadata"
FORMAT_VERSION = 2  # files are TFRecords; older versions have a format that only snapshots use
COMPRESSIONS = ("", "GZIP", "SNAPPY")
_AUTO = "AUTO"


def check_compression(compression: str) -> str:
    """Return the compression to use, which is SNAPPY if `compression` is AUTO.

    Raises InvalidArgumentError if `compression` is not supported.
    """
    if compression == _AUTO:
        return "SNAPPY"
    if compression not in COMPRESSIONS:
        raise InvalidArgumentError(
            f"Unsupported compression {compression!r} of a snapshot, known: "
            f"{', '.join(map(repr, COMPRESSIONS))}"
        )
    return compression


def read_metadata(path: str, files: FileGate) -> pb.SnapshotMetadataRecord | None:
    """Read the metadata of the snapshot in folder `path`; return None if there is no snapshot."""
    name = os.path.join(path, METADATA_FILE)
    files.check_read(name)
    try:
        return pb.SnapshotMetadataRecord.FromString(pathlib.Path(name).read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise file_error(error, name) from None
    except DecodeError:
        raise DataLossError(f"Can't parse {name} as binary proto") from None


def write_metadata(path: str, metadata: pb.SnapshotMetadataRecord, files: FileGate) -> None:
    """Write `metadata` to folder `path`, which is created if it does not exist.

    The file is written under a temporary name and then renamed, so no reader sees a part of it.
    """
    name = os.path.join(path, METADATA_FILE)
    files.check_write(name)
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise file_error(error, name) from None
    with NewFile(name) as new:
        new.write(metadata.SerializeToString(deterministic=True))
        new.rename()


def shard_folders(path: str, run_id: str) -> list[str]:
    """Return the folders of the run's shards in order.

    Raises NotFoundError if the run does not exist.
    """
    run = os.path.join(path, run_id)
    try:
        names = sorted(name for name in os.listdir(run) if name.endswith(".shard"))
    except OSError:
        raise NotFoundError(f"Could not find the snapshot run [{run}]") from None
    return [os.path.join(run, name) for name in names]


def read_elements(
    folder: str,
    compression: str,
    types: Sequence[DataType],
    files: FileGate,
    version: int = FORMAT_VERSION,
) -> Iterator[Element]:
    """Yield the elements of all files in the `folder` of a shard.

    Raises the errors of `read_file`.
    """
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise file_error(error, folder) from None
    for name in names:
        if name.endswith(".snapshot"):
            yield from read_file(os.path.join(folder, name), compression, types, files, version)


def check_version(version: int) -> None:
    """Raise InvalidArgumentError unless files of this version can be read."""
    if not 0 <= version <= FORMAT_VERSION:
        raise InvalidArgumentError(f"Snapshot reader version: {version} is not supported.")


def read_file(
    path: str,
    compression: str,
    types: Sequence[DataType],
    files: FileGate,
    version: int = FORMAT_VERSION,
) -> Iterator[Element]:
    """Yield the elements of one file.

    Raises DataLossError if the file is damaged or ends within an element, and the errors of
    `check_version` and, for older versions, of `read_record_file`.
    """
    check_version(version)
    if version < FORMAT_VERSION:
        yield from read_record_file(path, compression, version, types, files)
        return
    files.check_read(path)
    records = tf_records(path, compression)
    while True:
        parts = [_tensor(record) for _, (_, record) in zip(types, records, strict=False)]
        if not parts:
            return
        if len(parts) != len(types):
            raise DataLossError(f"{path} ends within an element of {len(types)} components")
        yield tuple(parts)


def _tensor(record: bytes) -> TensorValue:
    try:
        proto = pb.TensorProto.FromString(record)
        if proto.dtype == pb.DT_VARIANT:
            return variants_from_proto(proto)
        return tensor_from_proto(proto, tensor_limit())
    except DecodeError:
        raise DataLossError("Unable to parse a tensor of a snapshot") from None


class SnapshotWriter:
    """Writes the elements of one run; not thread-safe.

    The constructor writes the metadata file, in which `finalized` is false until `finish` is
    called. To continue an interrupted run, pass its `run_id` and, as `file_number`, the number of
    the files to write next.
    """

    def __init__(
        self,
        path: str,
        compression: str,
        types: Sequence[DataType],
        files: FileGate,
        graph_hash: str = "",
        run_id: str = "",
        file_number: int = 0,
    ) -> None:
        # the number in the names of the open files, of which each shard has one
        self.file_number = file_number
        self._path = path
        self._compression = compression
        self._types = types
        self._gate = files
        self._open: dict[int, IO[bytes]] = {}
        self._refused: OpError | None = None  # set once data could not be written
        self.metadata = pb.SnapshotMetadataRecord(
            graph_hash=graph_hash,
            run_id=run_id or str(secrets.randbits(64)),
            creation_timestamp=int(time.time() * 1e6),  # microseconds
            version=FORMAT_VERSION,
            dtype=[pb.DataType.Name(each) for each in types],
            num_elements=0 if graph_hash else -1,
        )
        write_metadata(path, self.metadata, files)

    def add(self, shard: int, element: Element) -> None:
        """Append an element to the open file of a shard, which is created if necessary.

        If data can't be written, this call and all later ones raise the OpError of `file_error`,
        since a run that lacks an element must not be continued or completed.
        """
        self._check()
        file = self._open.get(shard)
        if file is None:
            file = self._open[shard] = self._shard(shard)
        records = [
            framed(_serialized(value, data_type))
            for value, data_type in zip(element, self._types, strict=True)
        ]
        try:
            for record in records:
                file.write(record)
        except OSError as error:
            self._refused = file_error(error, self._path)
            raise self._refused from None

    def _check(self) -> None:
        if self._refused is not None:
            raise self._refused

    def _shard(self, shard: int) -> IO[bytes]:
        folder = os.path.join(self._path, self.metadata.run_id, f"{shard:08}.shard")
        name = os.path.join(folder, f"{self.file_number:08}.snapshot")
        self._gate.check_write(name)
        try:
            os.makedirs(folder, exist_ok=True)
            if self._compression == "GZIP":
                return gzip.GzipFile(name, "wb", mtime=0)  # type: ignore[return-value] # writes
            file = open(name, "wb")  # noqa: SIM115 # closed by `close`
            return _SnappyFile(file) if self._compression else file  # type: ignore[return-value]
        except OSError as error:
            raise file_error(error, name) from None

    def finish(self, num_elements: int) -> None:
        """Close the files and mark the run as complete in the metadata."""
        self._check()
        self.close()
        self.metadata.num_elements = num_elements
        self.metadata.finalized = True
        write_metadata(self._path, self.metadata, self._gate)

    def begin_files(self) -> None:
        """Close the files, which makes their elements readable; later elements go to new files."""
        self._check()
        self.close()
        self.file_number += 1

    def close(self) -> None:
        """Close the files; the run remains incomplete unless `finish` was called.

        Raises the OpError of `file_error` if data can't be written.
        """
        while self._open:
            try:
                self._open.popitem()[1].close()
            except OSError as error:
                self._refused = file_error(error, self._path)
        self._check()


class _SnappyFile:
    """A file that compresses what is written to it in blocks of _BLOCK_BYTES."""

    # TensorFlow reads blocks of up to 256 KiB, a limit that holds for the compressed size too
    _BLOCK_BYTES = 128 * 1024

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._pending = bytearray()

    def write(self, data: bytes) -> None:
        self._pending += data
        while len(self._pending) >= self._BLOCK_BYTES:
            self._write_block()

    def _write_block(self) -> None:
        self._file.write(compress_framed(bytes(self._pending[: self._BLOCK_BYTES])))
        del self._pending[: self._BLOCK_BYTES]

    def close(self) -> None:
        with self._file:
            if self._pending:
                self._write_block()


def _serialized(value: TensorValue, data_type: DataType) -> bytes:
    if data_type is DataType.VARIANT:
        proto = variants_to_proto(value)
    else:
        proto = tensor_to_proto(np.asarray(value), data_type)
    return proto.SerializeToString(deterministic=True)
