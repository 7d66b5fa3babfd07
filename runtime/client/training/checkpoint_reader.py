"""CheckpointReader, which reads the tensors of a checkpoint in this process, without a graph.

TF: tensorflow/python/training/py_checkpoint_reader.py, checkpoint_utils.py
"""

from __future__ import annotations

import os

import numpy as np

from runtime.client.training.saver import latest_checkpoint
from runtime.framework.dtypes import DataType
from runtime.framework.io.file_gate import AllowAll
from runtime.framework.io.tensor_bundle_reader import TensorBundleReader


class CheckpointReader:
    """A reader of a checkpoint of the V2 format."""

    def __init__(self, filepattern: str | os.PathLike[str]) -> None:
        """Open a checkpoint.

        Raises NotFoundError if there is none at `filepattern`, a path prefix (see
        TensorBundleReader).
        """
        self._reader = TensorBundleReader(os.fspath(filepattern), AllowAll())

    def has_tensor(self, tensor_str: str) -> bool:
        """Return whether the checkpoint has a tensor named `tensor_str`."""
        return tensor_str in self._reader

    def get_tensor(self, tensor_str: str) -> np.ndarray:
        """Return the array of the tensor `tensor_str`.

        Raises NotFoundError if the name is unknown, DataLossError if the files are damaged.
        """
        return self._reader.read(tensor_str)

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """Return {tensor name: shape} for all tensors of the checkpoint."""
        return {name: list(self._reader.entry(name).shape) for name in self._reader.names}

    def get_variable_to_dtype_map(self) -> dict[str, DataType]:
        """Return {tensor name: element type} for all tensors of the checkpoint."""
        return {name: self._reader.entry(name).dtype for name in self._reader.names}


def load_checkpoint(ckpt_dir_or_file: str | os.PathLike[str]) -> CheckpointReader:
    """Return the reader of a checkpoint, or of the newest checkpoint in a folder.

    Raises ValueError if the folder has no checkpoint.
    """
    path = os.fspath(ckpt_dir_or_file)
    if os.path.isdir(path):
        newest = latest_checkpoint(path)
        if newest is None:
            raise ValueError(
                f"Couldn't find 'checkpoint' file or checkpoints in given directory {path}"
            )
        path = newest
    return CheckpointReader(path)


def load_variable(ckpt_dir_or_file: str | os.PathLike[str], name: str) -> np.ndarray:
    """Return the array of one tensor of a checkpoint; `name` may end in `:0`."""
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))


def list_variables(ckpt_dir_or_file: str | os.PathLike[str]) -> list[tuple[str, list[int]]]:
    """Return [(name, shape)] of all tensors of a checkpoint, sorted by name."""
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())
