"""The tensors of a checkpoint, read in this process and without a graph.

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
    """A checkpoint of the V2 format."""

    def __init__(self, filepattern: str | os.PathLike[str]) -> None:
        """Open a checkpoint; raises NotFoundError where there is none (see TensorBundleReader)."""
        self._reader = TensorBundleReader(os.fspath(filepattern), AllowAll())

    def has_tensor(self, tensor_str: str) -> bool:
        """Whether the checkpoint has a tensor of that name."""
        return tensor_str in self._reader

    def get_tensor(self, tensor_str: str) -> np.ndarray:
        """The array of a tensor.

        Raises NotFoundError for an unknown name, DataLossError for damaged files.
        """
        return self._reader.read(tensor_str)

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """{tensor name: shape} of the whole checkpoint."""
        return {name: list(self._reader.entry(name).shape) for name in self._reader.names}

    def get_variable_to_dtype_map(self) -> dict[str, DataType]:
        """{tensor name: element type} of the whole checkpoint."""
        return {name: self._reader.entry(name).dtype for name in self._reader.names}


def load_checkpoint(ckpt_dir_or_file: str | os.PathLike[str]) -> CheckpointReader:
    """The reader of a checkpoint, or of the newest checkpoint of a folder.

    Raises ValueError for a folder without a checkpoint.
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
    """The array of one tensor of a checkpoint; `name` may end in `:0`."""
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))


def list_variables(ckpt_dir_or_file: str | os.PathLike[str]) -> list[tuple[str, list[int]]]:
    """[(name, shape)] of all tensors of a checkpoint, sorted by name."""
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())
