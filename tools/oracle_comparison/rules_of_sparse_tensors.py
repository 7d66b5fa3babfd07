"""The rule for sparse tensors that TensorFlow takes without a check."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

import protos as pb
from runtime.framework import op_def_registry
from tests.conformance.case import Answer, Case, Step
from tools.oracle_comparison.node_inputs import inputs_of
from tools.oracle_comparison.rules_of_difference import Answers

_INDICES, _SHAPES = "indices", ("shape", "shapes", "dense_shape")


def odd_sparse_tensor(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """A sparse tensor's indices exceed its shape, repeat or are not in row-major order.

    Or its shape has a negative size. A sparse tensor is what a node has as `…indices` and `…shape`.
    """
    return any(
        _is_odd(indices, shapes)
        for node in case.graph.node
        for step in case.steps
        for indices, shapes in _sparse_tensors(case, node, step)
    )


def _sparse_tensors(
    case: Case, node: pb.NodeDef, step: Step
) -> Iterator[tuple[np.ndarray, list[np.ndarray]]]:
    """Yield (indices, the shapes that belong to them) of a node's sparse inputs."""
    op_def = op_def_registry.find(node.op)
    if op_def is None or not any(arg.name.endswith(_INDICES) for arg in op_def.input_arg):
        return
    inputs = inputs_of(case, node, step)
    for name, values in inputs.items():
        if name.endswith(_INDICES):
            prefix = name.removesuffix(_INDICES)
            shapes = [inputs[prefix + each] for each in _SHAPES if inputs.get(prefix + each)]
            for place, indices in enumerate(values):
                yield indices, [each[place] for each in shapes if place < len(each)]


def _is_odd(indices: np.ndarray, shapes: list[np.ndarray]) -> bool:
    if any(shape.ndim == 1 and (shape < 0).any() for shape in shapes):
        return True
    if indices.ndim != 2 or not indices.size:
        return False
    rows = [tuple(row) for row in indices.tolist()]
    if (indices < 0).any() or any(one >= two for one, two in itertools.pairwise(rows)):
        return True
    fitting = [shape for shape in shapes if shape.shape == (indices.shape[1],)]
    return any((indices >= shape).any() for shape in fitting)
