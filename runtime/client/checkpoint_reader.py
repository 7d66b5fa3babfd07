"""The tensors of a checkpoint, read in this process and without a graph.

TF: tensorflow/python/training/py_checkpoint_reader.py, checkpoint_utils.py
"""

from __future__ import annotations

import os

import numpy as np

from runtime.client.saver import latest_checkpoint
from runtime.framework.dtypes import DataType
from runtime.framework.file_gate import AllowAll
from runtime.framework.tensor_bundle_reader import TensorBundleReader


class CheckpointReader:
    """A checkpoint of the V2 format."""

    def __init__(self, filepattern: str | os.PathLike[str]) -> None:
        """Raises as `TensorBundleReader`: NotFoundError where there is no checkpoint."""
        self._reader = TensorBundleReader(os.fspath(filepattern), AllowAll())

    def has_tensor(self, tensor_str: str) -> bool:
        """Whether the checkpoint has a tensor of that name."""
        return tensor_str in self._reader

    def get_tensor(self, tensor_str: str) -> np.ndarray:
        """The values; NotFoundError for a name that it lacks, DataLossError for damaged files."""
        return self._reader.read(tensor_str)

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """{name: sizes}."""
        return {name: list(self._reader.entry(name).shape) for name in self._reader.names}

    def get_variable_to_dtype_map(self) -> dict[str, DataType]:
        """{name: element type}."""
        return {name: self._reader.entry(name).dtype for name in self._reader.names}


def load_checkpoint(ckpt_dir_or_file: str | os.PathLike[str]) -> CheckpointReader:
    """The reader of a checkpoint, or of the newest of a folder; ValueError where there is none."""
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
    """One tensor of a checkpoint; `:0` may end its name."""
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))


def list_variables(ckpt_dir_or_file: str | os.PathLike[str]) -> list[tuple[str, list[int]]]:
    """[(name, sizes)], by name."""
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())
