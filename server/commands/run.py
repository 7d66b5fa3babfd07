"""`runstep run DIR --feed x=… --fetch …`: run one step of a SavedModel."""

from __future__ import annotations

import argparse
import collections
import io
import sys
import zipfile
import zlib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import protos as pb
from runtime.api import (
    DataType,
    SavedModelBundle,
    SessionOptions,
    Timeline,
    engine_name,
    load_saved_model,
    report_clusters,
    write_file,
)
from runtime.errors import InvalidArgumentError, NotFoundError, OpError
from server.codec.json_body import parse_json, to_json
from server.codec.session.tensor_reader import read_tensor
from server.codec.session.tensor_writer import write_tensor
from server.commands.model_folder import find_saved_model, read_tags
from server.commands.progress import Progress
from server.commands.show import describe_tensor
from server.commands.slow_ops import describe_slow
from server.sessions.requests import as_direct_session

# What numpy raises for a file that is empty, broken off, something else or pickled.
_NOT_NUMPY = (ValueError, EOFError, zipfile.BadZipFile, zlib.error)
_CALLER_THREAD = pb.RunOptions(inter_op_thread_pool=-1)


def run(options: argparse.Namespace) -> int:
    """Load the model, run a step and print its outputs; raise OpError that says what to change."""
    feeds = [_split_feed(feed) for feed in options.feed]
    _check_once(name for name, _ in feeds)
    folder = find_saved_model(options.directory)
    with Progress(f"Loading {folder}"):
        bundle = load_saved_model(SessionOptions(), _CALLER_THREAD, folder, read_tags(options.tags))
    step = _Step(bundle, options.signature)
    arrays = {step.input_tensor(name): step.read(name, text) for name, text in feeds}
    fetches = {name: step.output_tensor(name) for name in options.fetch}
    if not fetches and not options.target:
        fetches = step.all_outputs()
    with Progress("Running"):
        try:
            values = _run_step(bundle, arrays, list(fetches.values()), options)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(error.message + step.unfed(arrays)) from None
    outputs = dict(zip(fetches, values, strict=True))
    if options.output is None:
        types = {name: step.data_type(tensor) for name, tensor in fetches.items()}
        written = {name: write_tensor(outputs[name], types[name]) for name in outputs}
        sys.stdout.write(to_json(written).decode() + "\n")
    else:
        _save(Path(options.output), outputs)
    return 0


def _run_step(
    bundle: SavedModelBundle,
    feeds: Mapping[str, np.ndarray],
    fetches: Sequence[str],
    options: argparse.Namespace,
) -> list[Any]:
    """Run the step and return its values; with --trace, say what was slow."""
    if options.trace is None:
        return bundle.session.run(feeds, fetches, options.target, _CALLER_THREAD)
    metadata = pb.RunMetadata()
    traced = pb.RunOptions(inter_op_thread_pool=-1, trace_level=pb.RunOptions.FULL_TRACE)
    values = bundle.session.run(feeds, fetches, options.target, traced, metadata)
    if options.trace:
        trace = Timeline(metadata.step_stats).generate_chrome_trace_format()
        write_file(options.trace, trace.encode())
    # Standard output has the values.
    lines = [*describe_slow(metadata.step_stats), *_clusters(bundle, options)]
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    return values


def _clusters(bundle: SavedModelBundle, options: argparse.Namespace) -> Iterator[str]:
    """Yield what an engine computes of this step when it is not traced."""
    engine = engine_name()
    if not engine or options.fetch or options.target:
        return
    for found in report_clusters(bundle.meta_graph_def):
        if found.signature == options.signature and found.nodes:
            inside, outside = sum(found.nodes), sum(found.outside.values())
            yield ""
            yield (
                f"A traced step runs each op by itself. Untraced, {engine} can compute {inside} of "
                f"its {inside + outside} ops together (clusters of "
                f"{', '.join(map(str, found.nodes))}) where that pays."
            )


def _split_feed(feed: str) -> tuple[str, str]:
    name, equals, value = feed.partition("=")
    if not equals or not name:
        raise InvalidArgumentError(f"--feed needs NAME=VALUE, got {feed!r}")
    return name, value


def _check_once(names: Iterable[str]) -> None:
    twice = [name for name, count in collections.Counter(names).items() if count > 1]
    if twice:
        raise InvalidArgumentError(f"--feed gives {', '.join(twice)} more than once")


class _Step:
    """Resolves the names of a signature's inputs and outputs, and the names of tensors."""

    def __init__(self, bundle: SavedModelBundle, signature: str) -> None:
        self._session = as_direct_session(bundle.session)
        self._known = bundle.signatures
        self._name = signature
        self._signature = bundle.signatures.get(signature)

    def input_tensor(self, name: str) -> str:
        """Return the tensor of the input `name`, or `name` if it is the name of a tensor."""
        return self._tensor(name, {} if self._signature is None else self._signature.inputs)

    def output_tensor(self, name: str) -> str:
        """Return the tensor of the output `name`, or `name` if it is the name of a tensor."""
        return self._tensor(name, {} if self._signature is None else self._signature.outputs)

    def unfed(self, fed: Container[str]) -> str:
        """Return a sentence with the inputs of the signature that are not in `fed`, or ""."""
        infos = {} if self._signature is None else self._signature.inputs
        missing = [
            f"{alias} ({describe_tensor(info)})"
            for alias, info in sorted(infos.items())
            if info.name not in fed
        ]
        if not missing:
            return ""
        return f"\nNo --feed gives these inputs of {self._name}: {', '.join(missing)}"

    def all_outputs(self) -> dict[str, str]:
        """Return {name: tensor} of the signature's outputs.

        Raises NotFoundError if there is no such signature.
        """
        if self._signature is None:
            raise self._unknown_signature("Name what to fetch with --fetch")
        return {alias: info.name for alias, info in self._signature.outputs.items()}

    def _unknown_signature(self, rest: str) -> NotFoundError:
        return NotFoundError(
            f"There is no signature {self._name!r}; there are "
            f"{', '.join(sorted(self._known)) or 'none'}. {rest}"
        )

    def _tensor(self, name: str, aliases: Mapping[str, pb.TensorInfo]) -> str:
        if name in aliases:
            return aliases[name].name
        try:
            self._session.tensor_info(name)
        except OpError as error:
            if self._signature is None:
                rest = f"{name!r} is no tensor of the graph either: {error.message}"
                raise self._unknown_signature(rest) from None
            raise InvalidArgumentError(
                f"{name!r} is neither of signature {self._name} "
                f"({', '.join(sorted(aliases)) or 'which has none'}) nor a tensor of the graph: "
                f"{error.message}"
            ) from None
        return name

    def data_type(self, tensor: str) -> DataType:
        """Return the element type of a tensor of the graph."""
        return self._session.tensor_info(tensor)[0]

    def read(self, name: str, text: str) -> np.ndarray:
        """Read the value of a feed: JSON, @file.json, a .npy file, or file.npz:array."""
        file, _, array = text.rpartition(":")
        if file.endswith(".npz"):
            return _load_npz(file, array)
        if text.endswith(".npy"):
            return _load_npy(text)
        body = _read_bytes(text[1:]) if text.startswith("@") else text.encode()
        try:
            value = parse_json(body)
        except InvalidArgumentError as error:
            text = error.message.removeprefix("The body is ")
            raise InvalidArgumentError(f"The value of --feed {name} is {text}") from None
        return read_tensor(value, name, self.data_type(self.input_tensor(name)))


def _read_bytes(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise NotFoundError(f"Cannot read {path}: {error.strerror}") from None


def _load(path: str) -> Any:
    try:
        # numpy would leave such a file open.
        if Path(path).suffix == ".npz" and _is_broken_zip(path):
            raise InvalidArgumentError(f"{path} is not a numpy file: the archive breaks off")
        return np.load(path, allow_pickle=False)
    except OSError as error:
        raise NotFoundError(f"Cannot read {path}: {error.strerror or error}") from None
    except _NOT_NUMPY as error:
        raise InvalidArgumentError(f"{path} is not a numpy file: {error}") from None


def _is_broken_zip(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(2) == b"PK" and not zipfile.is_zipfile(file)


def _load_npy(path: str) -> np.ndarray:
    array = _load(path)
    if not isinstance(array, np.ndarray):
        array.close()
        raise InvalidArgumentError(f"{path} is an .npz file; name it so, and an array: x.npz:array")
    return _as_tensor(array)


def _load_npz(path: str, array: str) -> np.ndarray:
    file = _load(path)
    if not isinstance(file, np.lib.npyio.NpzFile):
        raise InvalidArgumentError(f"{path} is a .npy file, which has one array without a name")
    with file as arrays:
        if array not in arrays.files:
            raise NotFoundError(f"{path} has no array {array!r}; it has {', '.join(arrays.files)}")
        try:
            return _as_tensor(arrays[array])
        except _NOT_NUMPY as error:
            raise InvalidArgumentError(f"Cannot read {array!r} of {path}: {error}") from None


def _as_tensor(array: np.ndarray) -> np.ndarray:
    """Return the array as a tensor; numpy's text and bytes become string tensors."""
    if array.dtype.kind == "U":
        array = np.char.encode(array, "utf-8")
    return array.astype(object) if array.dtype.kind == "S" else array


def _save(path: Path, outputs: Mapping[str, Any]) -> None:
    """Write an .npz file; strings are stored as numpy's bytes, which require no pickle."""
    arrays = {
        name: np.asarray(value.tolist(), np.bytes_) if value.dtype == object else value
        for name, value in ((name, np.asarray(value)) for name, value in outputs.items())
    }
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **_file_names(arrays))
    write_file(str(path if path.suffix == ".npz" else f"{path}.npz"), file.getbuffer())


def _file_names(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Replace the colons in names, which file names may not have: `y:0` becomes `y_0`."""
    return {name.replace(":", "_"): array for name, array in arrays.items()}
