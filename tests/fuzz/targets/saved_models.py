"""SavedModels with variables and assets: loaded as the server loads them, and run, or refused."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import numpy as np
from google.protobuf.message import DecodeError

import protos as pb
from runtime.api import (
    FolderGate,
    RunRequest,
    SessionOptions,
    ThreadPool,
    load_saved_model,
    set_tensor_limit,
)
from runtime.errors import OpError
from runtime.framework.dtypes import DataType
from runtime.framework.io.tensor_bundle import HEADER_KEY
from server.models.model_version import ModelVersion
from server.models.signature import TensorSpec
from tests.fuzz.children import enter
from tests.fuzz.files import Folder, read_files, write_files
from tests.fuzz.mutate_bytes import mutated_bytes, smaller_bytes
from tests.fuzz.mutate_graphs import Hostile
from tests.fuzz.mutate_messages import mutate_message, smaller_messages
from tests.fuzz.mutate_structure import mutate_structure
from tests.fuzz.mutate_tables import mutated_table
from tests.fuzz.served import FIXTURES, TENSOR_BYTES
from tests.fuzz.target import Target, import_kernels, outcome_of

_MODEL, _INDEX = "saved_model.pb", "variables/variables.index"
_LARGEST = 40_000  # bytes of a saved_model.pb: larger ones load too slowly for many inputs
_DEADLINE_SECONDS = 0.5
_FIXTURE = ".fixture"  # the name of the model from which an input takes the files it does not have


class SavedModels(Target):
    """Mutated models of the fixtures; an input has only the files that were changed."""

    name = "saved_models"

    def __init__(self) -> None:
        self._folder = Folder()
        self._seeds = {
            path.name: _files(path.name)
            for path in sorted(FIXTURES.iterdir())
            if (path / _MODEL).exists() and (path / _MODEL).stat().st_size < _LARGEST
        }

    def load(self) -> None:
        import_kernels()

    def start(self) -> None:
        set_tensor_limit(TENSOR_BYTES)
        self._pool = ThreadPool("fuzz", 2)

    def make(self, random_state: random.Random) -> bytes:
        fixture = random_state.choice(sorted(self._seeds))
        files = self._seeds[fixture]
        changed = {_FIXTURE: fixture.encode()}
        for _ in range(random_state.choice((1, 1, 1, 2))):
            name = random_state.choice((_MODEL, _MODEL, _MODEL, *sorted(files)))
            changed[name] = _mutated(name, files[name], random_state)
        return write_files(changed)

    def run(self, data: bytes) -> str:
        changed = read_files(data)
        fixture = changed.pop(_FIXTURE, b"").decode()
        folder = str(self._folder.fill({**self._seeds.get(fixture, {}), **changed}))
        options = SessionOptions(
            files=FolderGate(()), clusters="off", config=pb.ConfigProto(), max_graph_nodes=10_000
        )
        # The server loads in a thread of its pool for loading, so without another pool.
        run_options = pb.RunOptions(inter_op_thread_pool=-1, timeout_in_ms=2000)
        try:
            bundle = load_saved_model(options, run_options, folder, ["serve"])
        except OpError as error:
            return outcome_of(error)
        outcome = "loaded"
        try:
            version = ModelVersion(fixture, 1, bundle)
            opened, _ = bundle.open_session(SessionOptions(clusters="off"))
            opened.close()
            for signature in version.signatures.values():
                feeds = {
                    signature.feed_names[alias]: _value(spec)
                    for alias, spec in signature.inputs.items()
                }
                request = RunRequest(
                    feeds,
                    list(signature.fetch_names.values()),
                    deadline=time.monotonic() + _DEADLINE_SECONDS,
                    pool=self._pool,
                )
                bundle.session.run_async(request).result()
                outcome = "answer"
        except OpError as error:
            outcome = outcome_of(error)
        finally:
            bundle.session.close()
        enter("after the end of the step")
        while self._pool.stats().tasks:
            time.sleep(0.001)
        return outcome

    def smaller(self, data: bytes) -> Iterator[bytes]:
        files = read_files(data)
        for name in files:
            if name != _FIXTURE:
                yield write_files({key: value for key, value in files.items() if key != name})
        for name, content in files.items():
            if name != _FIXTURE:
                for smaller in _smaller(name, content):
                    yield write_files({**files, name: smaller})


def _files(fixture: str) -> dict[str, bytes]:
    folder = FIXTURES / fixture
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "io.npz"
    }


def _mutated(name: str, content: bytes, random_state: random.Random) -> bytes:
    if name == _INDEX:
        return mutated_table(
            content,
            random_state,
            lambda key: pb.BundleHeaderProto if key == HEADER_KEY else pb.BundleEntryProto,
        )
    if name != _MODEL or random_state.random() < 0.1:
        return mutated_bytes(content, random_state)
    model = pb.SavedModel.FromString(content)
    for _ in range(random_state.choice((1, 1, 2, 3))):
        meta_graph = random_state.choice(model.meta_graphs) if model.meta_graphs else None
        kind = random_state.random()
        if kind < 0.2 or meta_graph is None:
            mutate_message(model, random_state)
        elif kind < 0.5:
            _mutate_parts(meta_graph, random_state)
        else:
            made = Hostile(meta_graph.graph_def, {}, [], [])
            if meta_graph.graph_def.node:
                mutate_structure(made, random_state)
    return model.SerializePartialToString()


def _mutate_parts(meta_graph: pb.MetaGraphDef, random_state: random.Random) -> None:
    """Change what is not the graph: signatures, collections, saver, assets, tags."""
    part = pb.MetaGraphDef()
    part.CopyFrom(meta_graph)
    part.ClearField("graph_def")
    mutate_message(part, random_state)
    part.graph_def.CopyFrom(meta_graph.graph_def)
    meta_graph.CopyFrom(part)


def _smaller(name: str, content: bytes) -> Iterator[bytes]:
    if name == _MODEL:
        try:
            model = pb.SavedModel.FromString(content)
        except DecodeError:
            yield from smaller_bytes(content)
        else:
            for each in smaller_messages(model):
                yield each.SerializePartialToString()
    else:
        yield from smaller_bytes(content)


def _value(spec: TensorSpec) -> np.ndarray:
    sizes = [size if 0 < size < 100 else 2 for size in (spec.shape or ())[:8]]
    if spec.data_type is DataType.STRING or spec.data_type.numpy is None:
        return np.full(sizes, b"a", object)
    return np.ones(sizes, spec.data_type.numpy)
