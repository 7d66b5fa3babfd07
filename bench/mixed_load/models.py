"""The models of a mixed load: a tiny one of ever new versions, and a large one."""

from __future__ import annotations

import dataclasses
import pathlib

import numpy as np

from runtime.client import saved_model
from runtime.client.framework.graph import Graph
from runtime.client.ops.construction import placeholder
from runtime.client.ops.math_ops import matmul
from runtime.client.ops.random_ops import random_normal
from runtime.client.ops.variables import Variable, global_variables_initializer
from runtime.client.session import Session
from runtime.framework.dtypes import DataType

CHANGING, LARGE = "changing", "large"
LAYERS = 8  # of the large model


def write_changing(base: pathlib.Path, version: int) -> None:
    """Write a version of the tiny model, y = x / 2 + version; it gets its name when complete."""
    with Graph().as_default(), Session() as session:
        x = placeholder(DataType.FLOAT, [None], "x")
        y = x * Variable(np.float32(0.5)) + Variable(np.float32(version))
        session.run(global_variables_initializer())
        base.mkdir(exist_ok=True)
        folder = base.parent / f"new-{version}"
        saved_model.simple_save(session, folder, {"x": x}, {"y": y})
    folder.rename(base / str(version))


@dataclasses.dataclass(frozen=True)
class LargeModel:
    """The large model: a row of its input, and the known answer."""

    x: np.ndarray  # float32 [1, width]
    y: np.ndarray  # float32 [1, width]


def write_large(base: pathlib.Path, megabytes: float) -> LargeModel:
    """Write version 1 of a chain of products of square matrices, of so many 10⁶ bytes in all.

    The weights are in the variables only, as in what Keras exports: the graph draws them.
    """
    width = round((megabytes * 1e6 / 4 / LAYERS) ** 0.5)
    row = np.random.default_rng(11).standard_normal((1, width), np.float32)
    with Graph().as_default(), Session() as session:
        x = value = placeholder(DataType.FLOAT, [None, width], "x")
        layers = [
            Variable(random_normal([width, width], stddev=width**-0.5, seed=layer))
            for layer in range(LAYERS)
        ]
        for layer in layers:
            value = matmul(value, layer)
        session.run(global_variables_initializer())
        answer = row
        for layer in layers:
            answer = answer @ session.run(layer)
        base.mkdir()
        saved_model.simple_save(session, base / "1", {"x": x}, {"y": value})
    return LargeModel(row, answer)
