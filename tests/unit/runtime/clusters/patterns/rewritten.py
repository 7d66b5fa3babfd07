"""Compares models as they are written with what patterns make of them, both run by the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from runtime.clusters.backend import CompiledModel
from runtime.clusters.dimensions import symbol
from runtime.clusters.emission import Emission, live_operations
from runtime.clusters.emit_cluster import EmittedCluster
from runtime.clusters.model_proto import serialize
from runtime.clusters.patterns import recognize
from runtime.clusters.values import Value
from runtime.framework.dtypes import DataType, from_numpy
from tests.unit.runtime.clusters.emitted import assert_close

# Writes a model: (emission, input, weights) → outputs
Build = Callable[[Emission, Value, list[Value]], Sequence[Value] | Value]


def values(*shape: int, seed: int = 7) -> np.ndarray:
    """Return normally distributed float32."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def apply(emission: Emission, op_type: str, *inputs: Value, **attributes: object) -> Value:
    """Add an element-wise operation, or one whose result has the shape of its first input."""
    shape = np.broadcast_shapes(
        *(tuple(1 if not isinstance(s, int) else s for s in each.shape) for each in inputs)
    )
    symbolic = [sum(not isinstance(s, int) for s in each.shape) for each in inputs]
    first = max(zip(inputs, symbolic, strict=True), key=lambda each: (each[0].rank, each[1]))[0]
    wanted = tuple(
        own if not isinstance(own, int) else size
        for own, size in zip(first.shape, shape, strict=True)
    )
    return emission.op(op_type, inputs, first.dtype, wanted, layout=first.layout, **attributes)


def number(emission: Emission, value: float) -> Value:
    """Return a scalar."""
    return emission.constant(value, DataType.FLOAT)


def kinds_after(
    build: Build, x: np.ndarray, *weights: np.ndarray, tolerance: float = 1e-5
) -> list[str]:
    """Return the types of the operations after all patterns; the results must be the same.

    Axis 0 of `x` is symbolic. Both forms of the models are compared, also for an empty batch.
    """
    before, after = _model(build, x, weights), _model(build, x, weights)
    after = EmittedCluster(after.emission, tuple(recognize(after.emission, after.outputs)))
    operations = live_operations(after.emission.operations, after.outputs)
    for is_baked in (True, False):
        for feed in (x, x[:0], x[:1]):
            wanted = _run(before, is_baked, feed, weights)
            for got, want in zip(_run(after, is_baked, feed, weights), wanted, strict=True):
                assert_close(got, want, tolerance)
    return [operation.op_type for operation in operations]


def _model(build: Build, x: np.ndarray, weights: Sequence[np.ndarray]) -> EmittedCluster:
    emission = Emission()
    source = emission.input(from_numpy(x.dtype), (symbol("batch"), *x.shape[1:]))
    known = [emission.weight(array, position) for position, array in enumerate(weights)]
    made = build(emission, source, known)
    outputs = [made] if isinstance(made, Value) else list(made)
    return EmittedCluster(emission, tuple(emission.in_model(each) for each in outputs))


def _run(
    cluster: EmittedCluster, is_baked: bool, x: np.ndarray, weights: Sequence[np.ndarray]
) -> list[np.ndarray]:
    model = serialize(cluster, is_baked)
    arrays = [weight.evaluate(list(weights), {}) for _, weight in model.weights]
    return CompiledModel(model, threads=1).run([x, *arrays])
