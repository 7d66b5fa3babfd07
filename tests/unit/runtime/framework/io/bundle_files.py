"""Bundles that tests write, and those that TensorFlow wrote."""

from __future__ import annotations

import pathlib

import numpy as np

from runtime.framework.dtypes import from_numpy
from runtime.framework.io.file_gate import AllowAll
from runtime.framework.io.tensor_bundle_writer import TensorBundleWriter
from runtime.framework.io.tensor_slice import parse_shape_and_slice

CHECKPOINTS = pathlib.Path(__file__).parents[4] / "fixtures" / "checkpoints"

Parts = tuple[tuple[str, np.ndarray], ...]


def write_plain(prefix: pathlib.Path, tensors: dict[str, np.ndarray]) -> None:
    """Write a bundle of whole tensors."""
    with TensorBundleWriter(str(prefix), AllowAll()) as writer:
        for name, value in tensors.items():
            writer.add(name, value, from_numpy(value.dtype))
        writer.finish()


def add_parts(writer: TensorBundleWriter, name: str, parts: Parts) -> None:
    """Add a tensor in parts: (shape and slice as text, value) pairs."""
    for spec, value in parts:
        shape, part = parse_shape_and_slice(spec)
        writer.add_slice(name, shape, part, value, from_numpy(value.dtype))


def assert_equal_files(folder: pathlib.Path, name: str) -> None:
    """Compare every file of a bundle with the one that TensorFlow wrote."""
    theirs = sorted(CHECKPOINTS.glob(f"{name}.*"))
    assert [path.name for path in theirs] == sorted(p.name for p in folder.glob(f"{name}.*"))
    for path in theirs:
        assert (folder / path.name).read_bytes() == path.read_bytes(), path.name
