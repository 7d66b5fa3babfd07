"""Checkpoints of both formats: every tensor is read whole and in part, or is refused."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping

import numpy as np
from google.protobuf.message import Message

import protos as pb
from runtime.api import FolderGate, set_tensor_limit
from runtime.errors import OpError
from runtime.framework.dtypes import DataType
from runtime.framework.io.tensor_bundle import HEADER_KEY
from runtime.framework.io.tensor_bundle_reader import TensorBundleReader
from runtime.framework.io.tensor_slice import TensorSlice
from runtime.framework.io.tensor_slice_file import TensorSliceReader
from tests.fuzz.files import Folder, read_files, smaller_files, write_files
from tests.fuzz.mutate_bytes import mutated_bytes
from tests.fuzz.mutate_tables import mutated_table
from tests.fuzz.served import FIXTURES, TENSOR_BYTES
from tests.fuzz.target import Target, outcome_of

_FOLDER = FIXTURES.parent / "checkpoints"
_BUNDLES = ("plain", "partitioned", "sharded", "lonely_slice")
_V1 = "v1"
_CHANGED_DATA = 0.3  # of the bundles have other data, not another index
_TYPES = (DataType.FLOAT, DataType.DOUBLE, DataType.INT32, DataType.STRING, DataType.COMPLEX64)


class Checkpoints(Target):
    """Mutated checkpoints of the fixtures."""

    name = "checkpoints"
    inputs_a_child = 2000

    def __init__(self) -> None:
        self._folder = Folder()
        self._seeds = [
            *({path.name: path.read_bytes() for path in _FOLDER.glob(f"{name}.*")}
              for name in _BUNDLES),
            {_V1: (_FOLDER / _V1).read_bytes()},
        ]  # fmt: skip

    def start(self) -> None:
        set_tensor_limit(TENSOR_BYTES)

    def make(self, random_state: random.Random) -> bytes:
        files = dict(random_state.choice(self._seeds))
        names = sorted(files)
        tables = [name for name in names if name == _V1 or name.endswith(".index")]
        data = [name for name in names if name not in tables]
        if data and random_state.random() < _CHANGED_DATA:
            name = random_state.choice(data)
            files[name] = mutated_bytes(files[name], random_state)
        else:
            name = tables[0]
            files[name] = mutated_table(files[name], random_state, _kind_of(name))
        return write_files(files)

    def run(self, data: bytes) -> str:
        files = read_files(data)
        folder = str(self._folder.fill(files))
        gate = FolderGate((folder,))
        try:
            if _V1 in files:
                return _read_v1(f"{folder}/{_V1}", gate)
            prefixes = {name.partition(".")[0] for name in files}
            return _read_bundle(f"{folder}/{min(prefixes, default='none')}", gate)
        except OpError as error:
            return outcome_of(error)

    def smaller(self, data: bytes) -> Iterator[bytes]:
        yield from smaller_files(data)


def _kind_of(name: str) -> Callable[[bytes], type[Message]]:
    if name == _V1:
        return lambda key: pb.SavedTensorSlices
    return lambda key: pb.BundleHeaderProto if key == HEADER_KEY else pb.BundleEntryProto


def _read_all(reads: Mapping[str, Callable[[], object]]) -> str:
    """Return "read" if all can be read, else the outcome of one that can't."""
    outcome = "read"
    for read in reads.values():
        try:
            read()
        except OpError as error:
            outcome = outcome_of(error)
            if not outcome.islower():
                return outcome
    return outcome


def _read_bundle(prefix: str, gate: FolderGate) -> str:
    with TensorBundleReader(prefix, gate) as reader:
        reads: dict[str, Callable[[], object]] = {}
        for name in reader.names:
            reads[name] = lambda name=name: reader.read(name)  # type: ignore[misc] # the name of now
            reads[f"{name}/part"] = lambda name=name: _part(reader, name)  # type: ignore[misc]
        reads["/entries"] = lambda: list(reader.entry_protos())
        return _read_all(reads)


def _part(reader: TensorBundleReader, name: str) -> np.ndarray:
    shape = reader.entry(name).shape
    return reader.read_slice(name, _first_half(shape))


def _first_half(shape: tuple[int, ...]) -> TensorSlice:
    proto = pb.TensorSliceProto()
    for size in shape:
        proto.extent.add(start=0, length=max(1, size // 2))
    return TensorSlice.from_proto(proto)


def _read_v1(path: str, gate: FolderGate) -> str:
    reader = TensorSliceReader(path, gate)
    reads: dict[str, Callable[[], object]] = {}
    for name in sorted(reader._tensors):
        for dtype in _TYPES:
            reads[f"{name}/{dtype}"] = lambda name=name, dtype=dtype: _v1_tensor(  # type: ignore[misc]
                reader, name, dtype
            )
    return _read_all(reads)


def _v1_tensor(reader: TensorSliceReader, name: str, dtype: DataType) -> np.ndarray:
    tensor = reader.tensor(name, dtype)
    reader.read(name, tensor, _first_half(tensor.shape))
    return reader.read(name, tensor, TensorSlice.whole(len(tensor.shape)))
