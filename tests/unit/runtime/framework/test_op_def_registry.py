"""Custom ops: a signature for the process, kernels for a session."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import protos as pb
import runtime.client as tf
from runtime.api import (
    AlreadyExistsError,
    InvalidArgumentError,
    KernelDef,
    NotFoundError,
    OpKernelContext,
    SessionOptions,
    new_session,
    register_op,
)
from tests.unit.runtime.sessions.graphs import X, direct_session, g1

_numbers = itertools.count()  # a registered op can not be removed


@pytest.fixture
def op() -> pb.OpDef:
    """Scales a number by an attribute."""
    definition = pb.OpDef(name=f"ScaledByOurs{next(_numbers)}")
    definition.input_arg.add(name="x", type=pb.DT_FLOAT)
    definition.output_arg.add(name="y", type=pb.DT_FLOAT)
    definition.attr.add(name="by", type="float").default_value.f = 2
    return definition


def graph_with(op: pb.OpDef, **attrs: float) -> pb.GraphDef:
    graph = g1()
    node = graph.node.add(name="scaled", op=op.name, input=["n"])
    for name, value in attrs.items():
        node.attr[name].f = value
    return graph


def scaled(context: OpKernelContext, x: np.ndarray, *, by: float) -> np.ndarray:
    assert context.node.name == "scaled"
    return x * np.float32(by)


def test_a_registered_op_runs_where_its_kernel_is(op: pb.OpDef) -> None:
    with pytest.raises(NotFoundError, match=f"Op type not registered '{op.name}'"):
        direct_session(graph_with(op))
    register_op(op)
    session = new_session(SessionOptions(kernels=[KernelDef(op.name, scaled)]))
    session.create(graph_with(op))
    for _ in range(3):  # the plan is interpreted first, then generated
        assert session.run({"x": X}, ["scaled"]) == [-12]
    other = new_session(SessionOptions(kernels=[KernelDef(op.name, scaled)]))
    other.create(graph_with(op, by=3))
    assert other.run({"x": X}, ["scaled"]) == [-18]
    without = direct_session(graph_with(op))
    assert without.run({"x": X}, ["n"]) == [-6]
    with pytest.raises(InvalidArgumentError, match=f"No OpKernel was registered .* '{op.name}'"):
        without.run({"x": X}, ["scaled"])


def test_the_signature_is_checked_as_any(op: pb.OpDef) -> None:
    register_op(op)
    graph = graph_with(op)
    graph.node[-1].input.append("n")
    with pytest.raises(InvalidArgumentError, match="Input 1 of node scaled does not exist"):
        direct_session(graph)


def test_the_front_end_knows_it(op: pb.OpDef) -> None:
    register_op(op)
    with tf.Graph().as_default() as graph:
        y = getattr(tf.ops, op.name)(tf.constant(1.0), by=5.0)
    assert (y.dtype, y.op.type) == (tf.float32, op.name)
    assert graph.as_graph_def().node[-1].attr["by"].f == 5


def test_a_name_is_registered_once(op: pb.OpDef) -> None:
    register_op(op)
    for taken in (op.name, "Neg"):
        with pytest.raises(AlreadyExistsError, match=f"^Op with name {taken}$"):
            register_op(pb.OpDef(name=taken))
