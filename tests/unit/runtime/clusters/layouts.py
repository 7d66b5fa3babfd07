"""Graphs with values that are channels-first, as those of convolutions are.

In these graphs Snapshot stands for a convolution: its result is its input, channels first.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import pytest

from runtime.clusters.dimensions import Shape
from runtime.clusters.emission import Emission
from runtime.clusters.emit_cluster import emit_cluster
from runtime.clusters.emitters import EMITTERS
from runtime.clusters.op_emitter import OpEmitter
from runtime.clusters.values import Value
from runtime.framework.dtypes import DataType
from runtime.graph.node import Node
from tests.conformance.case import Graph
from tests.unit.runtime.clusters import emitted as harness
from tests.unit.runtime.clusters.emitted import Emitted, Feeds, emitted


def _channels_first(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    return emission.channels_first(inputs[0])


TABLE = {**EMITTERS, "Snapshot": OpEmitter("Snapshot", _channels_first)}


def channels_first(graph: Graph, value: tuple[str, DataType]) -> tuple[str, DataType]:
    """Return `value` as an operand that is channels-first in the model."""
    return graph.add("Snapshot", value)[0]


def emitted_with_layouts(
    monkeypatch: pytest.MonkeyPatch,
    graph: Graph,
    feeds: Feeds,
    fetches: Sequence[str],
    shapes: Sequence[Shape] | None = None,
) -> Emitted:
    """Emit a graph in which Snapshot makes values channels-first."""
    with monkeypatch.context() as patch:
        patch.setattr(harness, "emit_cluster", functools.partial(emit_cluster, table=TABLE))
        return emitted(graph, feeds, fetches, shapes=shapes)


def numbers(*shape: int) -> np.ndarray:
    """Return random float32 of a shape, the same for the same shape."""
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)
