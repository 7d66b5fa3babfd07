"""Models that the engine has optimised, which the processes of one server share.

The first process that compiles a model lets the engine save it: the message, and beside it one file
with the arrays as the engine wants them (reordered, packed). Every process loads the message and
maps the arrays, so they exist once; that takes milliseconds instead of a compilation.

Guarantees: what is loaded was saved from a model with the same message and arrays, by the same
version of the engine on this machine, and its arrays are complete.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

import protos as pb
from runtime.clusters.model_proto import SerializedModel
from runtime.foundation.shared_files import SharedFile, shared_files

LEAST_BYTES = 1 << 20  # of a model's arrays; smaller models are compiled in every process


def is_worth_sharing(model: SerializedModel) -> bool:
    """Return whether processes share models, and this one has large arrays."""
    return shared_files.is_on and sum(each.nbytes for each in model.arrays.values()) >= LEAST_BYTES


def saved_model(
    model: SerializedModel,
    version: str,
    save: Callable[[Path, str], None],
    check: Callable[[], None],
) -> SharedFile:
    """Return a file that keeps the saved model alive, which is at `message_path`.

    `save` is called if no process has saved the model, with the path of the message and the name of
    the file with the arrays, which must be in the same folder. `check` is called while another
    process saves it; it may raise. Raises OSError, and what `save` raises.
    """

    def make(_: int, path: Path) -> None:
        arrays = path.with_name(f"{path.name}.arrays")
        save(message_path(path), arrays.name)
        _check_complete(message_path(path), arrays)

    return shared_files.open(_key(model, version), make, check)


def message_path(path: Path) -> Path:
    """Return the path of the message of a saved model, by that of its file."""
    return path.with_name(f"{path.name}.onnx")


def _key(model: SerializedModel, version: str) -> str:
    digest = hashlib.sha256(f"{version}\0{len(model.message)}\0".encode())
    digest.update(model.message)
    for array in model.arrays.values():  # the message has their names, types and shapes
        digest.update(array.reshape(-1).view(np.uint8).data)
    return f"model-{digest.hexdigest()}"


def _check_complete(message: Path, arrays: Path) -> None:
    """Raise OSError unless the file has all arrays: reading a mapping beyond its end is fatal."""
    model = pb.onnx.ModelProto.FromString(message.read_bytes())
    expected = max(map(_end_of_arrays, model.graph.initializer), default=0)
    size = os.path.getsize(arrays)
    if size < expected:
        raise OSError(f"{arrays} has {size} bytes, {expected} were to be saved")


def _end_of_arrays(tensor: pb.onnx.TensorProto) -> int:
    """Return where the last array of an initializer ends in the file; 0 if none is there.

    Packed arrays are entries "prepacked_<n>" of the form `<kernel>|<offset>;<length>;…|…`. Models
    of clusters have no graphs inside nodes, which could have further initializers.
    """
    fields = {entry.key: entry.value for entry in tensor.external_data}
    places = [(fields["offset"], fields["length"])] if fields else []
    for key, value in fields.items():
        if key.startswith("prepacked"):
            for blob in value.split("|")[1:]:
                offset, length, *_ = blob.split(";")
                places.append((offset, length))
    return max((int(offset) + int(length) for offset, length in places), default=0)
