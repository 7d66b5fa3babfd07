"""The graphs and models of a soak, and their known results."""

from __future__ import annotations

import functools
import json
import pathlib
from typing import Any

import numpy as np

import protos as pb
from bench.serving import ROOT
from runtime.api import SessionOptions, load_saved_model, new_session
from runtime.client import saved_model
from runtime.client.framework.graph import Graph
from runtime.client.ops.construction import placeholder
from runtime.client.ops.math_ops import matmul
from runtime.client.ops.variables import Variable, global_variables_initializer
from runtime.client.session import Session
from runtime.framework.dtypes import DataType
from tests.conformance.case import Graph as NodeGraph

DENSE = "dense"  # the model of which ever new versions are loaded
WIDTH = 256  # of its layers, which are worth a cluster
ROWS = 32


def dense_weights() -> list[np.ndarray]:
    """Return the weights of the layers, the same for every version."""
    random = np.random.default_rng(7)
    return [random.normal(0, WIDTH**-0.5, (WIDTH, WIDTH)).astype(np.float32) for _ in range(3)]


def dense_answer(x: np.ndarray) -> np.ndarray:
    """Return the known result for `x` [n, WIDTH], without the number of the version."""
    value = x
    for weights in dense_weights():
        value = value @ weights
    return value


def write_dense(base: pathlib.Path, version: int) -> None:
    """Write a version of the model: three products of matrices, plus the version's number.

    The folder gets its name when it is complete.
    """
    with Graph().as_default(), Session() as session:
        x = placeholder(DataType.FLOAT, [None, WIDTH], "x")
        value = x
        for weights in dense_weights():
            value = matmul(value, Variable(weights))
        y = value + Variable(np.float32(version))
        session.run(global_variables_initializer())
        base.mkdir(exist_ok=True)
        folder = base.parent / f"new-{version}"
        saved_model.simple_save(session, folder, {"x": x}, {"y": y})
    folder.rename(base / str(version))


@functools.cache
def digits_example() -> tuple[bytes, np.ndarray]:
    """Return a body of predict for the digits model, and the known result."""
    body = (ROOT / "examples/digit.json").read_bytes()
    bundle = load_saved_model(
        SessionOptions(clusters="off"), None, f"{ROOT}/examples/models/digits/1", ["serve"]
    )
    feeds = {"serving_default_image:0": np.array(json.loads(body)["instances"], np.float32)}
    (value,) = bundle.session.run(feeds, ["StatefulPartitionedCall_1:0"])
    bundle.session.close()
    return body, value


def counting_graph() -> pb.GraphDef:
    """Return a graph of a variable: `init` sets it to 0; `add` [] adds `by` and gives the sum."""
    graph = NodeGraph()
    options: dict[str, Any] = {"dtype": DataType.FLOAT, "shape": ()}
    handle = graph.add("VarHandleOp", name="count", shared_name="soak_count", **options)[0]
    graph.add("AssignVariableOp", handle, np.float32(0), name="init", dtype=DataType.FLOAT)
    by = graph.placeholder("float32", "by", ())
    graph.add("AssignAddVariableOp", handle, by, name="update", dtype=DataType.FLOAT)
    graph.add("ReadVariableOp", handle, name="add", dtype=DataType.FLOAT, control=["update"])
    return graph.graph_def


def waiting_graph() -> pb.GraphDef:
    """Return a graph whose step `take` waits for an element of an empty queue."""
    graph = NodeGraph()
    queue = graph.add("FIFOQueueV2", name="q", component_types=[DataType.FLOAT])[0]
    graph.add("QueueDequeueV2", queue, name="take", component_types=[DataType.FLOAT])
    return graph.graph_def


def products_graph(count: int) -> pb.GraphDef:
    """Return a graph of products of 128² matrices: y = x · w · … · w, whose weights are x's."""
    graph = NodeGraph()
    x = value = graph.placeholder("float32", "x", (128, 128))
    for index in range(count):
        value = graph.add("MatMul", value, x, name=f"m{index}")[0]
    graph.add("Identity", value, name="y")
    return graph.graph_def


def powers(x: np.ndarray, count: int) -> np.ndarray:
    """Return the known result of `products_graph`."""
    session = new_session(SessionOptions(clusters="off"))
    session.create(products_graph(count))
    (value,) = session.run({"x": x}, ["y"])
    session.close()
    return np.asarray(value)
