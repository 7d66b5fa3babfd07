"""Gradient cases as data: a function of tensors, its inputs, and TensorFlow's recorded gradients.

A family is a module `tests/gradients/cases/<family>.py` with a dict `CASES`; the expected gradients
are in `tests/conformance/golden/gradients_<family>.pb.gz`, written by `tools/record/gradients.py`.
The gradient of each result (`grad_ys`) is `weights`, different for every element, so that an
exchange of elements changes the gradients.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import runtime.client as tf
from runtime.client.framework.element_types import as_dtype

Body = Callable[..., Any]
FOLDER = pathlib.Path(__file__).parent / "cases"


@dataclasses.dataclass(frozen=True)
class GradientCase:
    """`body` takes the tensors of `arrays` and returns a tensor or a list of tensors.

    The gradients of all floating-point and complex inputs are compared; for `order` 2 the gradients
    of the weighted sum of these gradients. `tolerance` is relative to the largest value of each
    gradient.
    """

    body: Body
    arrays: tuple[np.ndarray, ...]
    order: int = 1
    tolerance: float = 1e-5


def case(body: Body, *arrays: Any, **options: Any) -> GradientCase:
    """A case; Python floats become float32 arrays."""
    return GradientCase(body, tuple(_as_array(each) for each in arrays), **options)


def _as_array(value: Any) -> np.ndarray:
    array = np.asarray(value)
    is_python = not isinstance(value, np.ndarray)
    smaller = {"f8": np.float32, "i8": np.int32, "c16": np.complex64}.get(array.dtype.str[1:])
    return array.astype(smaller) if is_python and smaller else array


def families() -> list[str]:
    """The names of all families."""
    return sorted(path.stem for path in FOLDER.glob("[a-z]*.py"))


def cases_of(family: str) -> dict[str, GradientCase]:
    """The cases of a family by name."""
    module = importlib.import_module(f"tests.gradients.cases.{family}")
    found: dict[str, GradientCase] = module.CASES
    return found


def forward_graph(case: GradientCase) -> tuple[tf.Graph, list[Any], list[Any]]:
    """(graph, results, inputs): the inputs are the placeholders `x0`, `x1`, …"""
    graph = tf.Graph()
    with graph.as_default():
        inputs = [
            tf.placeholder(as_dtype(array.dtype), array.shape, name=f"x{index}")
            for index, array in enumerate(case.arrays)
        ]
        results = case.body(*inputs)
        results = list(results) if isinstance(results, list | tuple) else [results]
    return graph, results, inputs


def feeds(case: GradientCase) -> dict[str, np.ndarray]:
    """The inputs by the names of their placeholders."""
    return {f"x{index}:0": array for index, array in enumerate(case.arrays)}


def has_gradient(dtype: Any) -> bool:
    """Whether tensors of a numpy type have a gradient."""
    return np.dtype(dtype).kind in "fc" or "float" in np.dtype(dtype).name


def weights(array: np.ndarray) -> np.ndarray:
    """A gradient for a result: of its shape and type, with a different value for each element."""
    numbers = 1.25 + np.sin(np.arange(array.size, dtype=np.float64) * 1.7).reshape(array.shape)
    return numbers.astype(array.dtype)


def digest(case: GradientCase) -> str:
    """A hash of the case's graph, inputs and order."""
    graph, results, _ = forward_graph(case)
    sha = hashlib.sha256(graph.as_graph_def().SerializeToString(deterministic=True))
    sha.update(repr([result.name for result in results]).encode())
    for array in case.arrays:
        sha.update(repr((array.dtype.str, array.shape)).encode() + array.tobytes())
    sha.update(str(case.order).encode())
    return sha.hexdigest()[:16]


def split_answer(values: Sequence[np.ndarray]) -> list[np.ndarray | None]:
    """The recorded gradients, None where there is none; the first value is the mask of the rest."""
    rest = iter(values[1:])
    return [next(rest) if is_there else None for is_there in values[0].tolist()]
