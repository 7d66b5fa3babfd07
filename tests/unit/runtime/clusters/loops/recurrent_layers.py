"""Recurrent layers as Keras exports them, with TensorFlow's answers.

`tools/export/recurrent_layers.py` writes the files and describes their format.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping

import numpy as np

import protos as pb
from runtime.graph.function_library import FunctionLibrary
from runtime.graph.graph import Graph
from runtime.graph.graph_constructor import extend_graph
from runtime.graph.node import Node
from runtime.graph.passes.optimizer import Optimizer
from runtime.graph.passes.pruning import StepGraph, prune
from runtime.registrations import kernel_registry

FOLDER = pathlib.Path(__file__).parents[4] / "fixtures" / "recurrent_layers"
INITIALIZE = "initialize"


@dataclasses.dataclass(frozen=True)
class RecurrentLayer:
    """A graph with its feeds, and TensorFlow's values of its fetches."""

    graph: pb.GraphDef
    feeds: Mapping[str, np.ndarray]
    answers: Mapping[str, np.ndarray]


def names() -> list[str]:
    """The names of all layers."""
    return sorted(path.stem for path in FOLDER.glob("*.npz"))


def read(name: str) -> RecurrentLayer:
    """The layer of this name."""
    with np.load(FOLDER / f"{name}.npz") as file:
        arrays = dict(file)
    graph = pb.GraphDef.FromString(arrays.pop("graph").tobytes())

    def under(prefix: str) -> dict[str, np.ndarray]:
        return {
            key.removeprefix(prefix): each for key, each in arrays.items() if key.startswith(prefix)
        }

    return RecurrentLayer(graph, under("in/"), under("out/"))


def optimised(
    graph_def: pb.GraphDef, feeds: Mapping[str, np.ndarray], fetches: Mapping[str, object]
) -> tuple[StepGraph, FunctionLibrary]:
    """The graph of a step after the passes, and the functions that its nodes call."""
    graph = extend_graph(Graph(), graph_def)
    step = prune(graph, list(feeds), list(fetches), [])
    Optimizer().run(step, graph.library, kernel_registry())
    return step, graph.library


def loops_of(graph: StepGraph) -> list[Node]:
    """The loops of a step."""
    return [node for node in graph.nodes if node.op in ("While", "StatelessWhile")]
