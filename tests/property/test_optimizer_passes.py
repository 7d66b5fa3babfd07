"""No pass of the optimiser changes a value, and none prevents a step from feeding a node.

The static shapes that the front end inferred are the shapes of the values.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import protos as pb
import runtime.client as tf
from runtime.api import OpError, SessionOptions, new_session
from runtime.framework.tensor_codec import tensor_to_proto
from runtime.graph.passes import optimizer

PASSES = ("remove_dead_branches", "fold_constants", "simplify_arithmetic", "share_subexpressions")
DTYPES = (tf.int32, tf.float32)
# Small values, mostly zeros and ones, and −0.0: the cases that simplifications must distinguish.
VALUES = (-2, -1, -0.0, 0, 1, 1, 2, 3)
SHAPE = (2, 3)
# Groups of ops that can replace each other: same inputs, same attributes, same shapes.
ALIKE = (("AddV2", "Sub", "Mul", "Maximum"), ("Neg", "Square", "Identity"))


@dataclasses.dataclass(frozen=True)
class Program:
    """A graph, its feeds, and the nodes whose values are compared."""

    graph: pb.GraphDef
    feeds: dict[str, np.ndarray]
    nodes: list[str]
    shapes: list[tuple[int, ...]]  # inferred static shapes of the nodes
    twins: list[tuple[str, str]]  # pairs of equal or nearly equal nodes


def _constant(draw: st.DrawFn, dtype: Any) -> Any:
    shape = draw(st.sampled_from([(), (), (), (), (1,), (3,), (2, 1), SHAPE]))
    count = int(np.prod(shape, dtype=int))
    values = VALUES if shape else (0, 0, 1)
    drawn = draw(st.lists(st.sampled_from(values), min_size=count, max_size=count))
    return tf.constant(np.array(drawn, dtype.numpy).reshape(shape))


def _neutral(draw: st.DrawFn, dtype: Any) -> Any:
    """A constant of zeros or ones, which is neutral in some operations."""
    shape = draw(st.sampled_from([(), (), (), (1,), (2, 1), SHAPE]))
    value = draw(st.sampled_from((0, 1, 1, -0.0)))
    return tf.constant(np.full(shape, value, dtype.numpy))


def _step(draw: st.DrawFn, known: list[Any], dtype: Any) -> Any:
    """Add an operation on tensors of `known`; its output, of the same element type."""
    known = [known[0], *known[-3:]]  # few, so that steps repeat each other
    x = draw(st.sampled_from(known))
    match draw(st.integers(0, 11)):
        case 0 | 1:
            return _constant(draw, dtype)
        case 2 | 3 | 10 | 11:
            ops = (tf.add, tf.subtract, tf.multiply)
            op = draw(st.sampled_from((*ops, tf.divide) if dtype is tf.float32 else ops))
            operands = [x, _neutral(draw, dtype)]
            return op(*operands) if draw(st.booleans()) else op(*reversed(operands))
        case 4:
            op = draw(st.sampled_from((tf.add, tf.subtract, tf.multiply, tf.maximum)))
            operands = [x, draw(st.sampled_from(known))]
            return op(*operands) if draw(st.booleans()) else op(*reversed(operands))
        case 5:
            op = draw(st.sampled_from((tf.negative, tf.identity, tf.square)))
            return op(op(x)) if draw(st.booleans()) else op(x)
        case 6:
            order = draw(st.permutations(range(x.shape.rank)))
            return tf.transpose(tf.transpose(x, order), draw(st.permutations(order)))
        case 7:
            return tf.reshape(tf.reshape(x, [-1]), tf.shape(x))
        case 8:
            return tf.cast(tf.cast(x, draw(st.sampled_from((tf.int64, tf.float64, dtype)))), dtype)
        case _:
            is_first = tf.constant(draw(st.booleans()))
            return tf.cond(is_first, lambda: x + x, lambda: tf.negative(x))


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Programs with constants, redundant arithmetic, constant conditions and control edges."""
    dtype = draw(st.sampled_from(DTYPES))
    value = np.array(draw(st.permutations((-1, 0, 1, 2, 3, -0.0))), dtype.numpy).reshape(SHAPE)
    with tf.Graph().as_default() as graph:
        known: list[Any] = [tf.placeholder(dtype, SHAPE, "x")]
        for _ in range(draw(st.integers(6, 16))):
            waits = [draw(st.sampled_from(known))] if draw(st.integers(0, 4)) == 0 else []
            with tf.control_dependencies(waits), contextlib.suppress(ValueError):
                made = _step(draw, known, dtype)  # raises for incompatible shapes
                if made.shape.is_fully_defined():
                    known.append(made)
        made = [each for each in dict.fromkeys(known) if each.op.name != "x"]
        made = made or [tf.identity(known[0])]
    shapes = {tensor.op.name: tuple(tensor.shape.sizes) for tensor in made}
    graph_def = graph.as_graph_def()
    twins = _add_twins(draw, graph_def, shapes)
    _add_branches(draw, graph_def, shapes, dtype)
    return Program(graph_def, {"x": value}, list(shapes), list(shapes.values()), twins)


def _add_twins(
    draw: st.DrawFn, graph: pb.GraphDef, shapes: dict[str, tuple[int, ...]]
) -> list[tuple[str, str]]:
    """Add nodes that differ from existing ones in at most one property; return the name pairs."""
    others = {op: ops for ops in ALIKE for op in ops}
    originals = [node for node in graph.node if node.op in others and node.name in shapes]
    twins = []
    for number in range(draw(st.integers(0, 3)) if originals else 0):
        original = draw(st.sampled_from(originals))
        twin = graph.node.add()
        twin.CopyFrom(original)
        twin.name = f"twin{number}"
        match draw(st.integers(0, 3)):
            case 0 | 1:
                twin.op = draw(st.sampled_from(others[original.op]))
            case 2 if len(original.input) > 1 and not original.input[1].startswith("^"):
                twin.input[0], twin.input[1] = original.input[1], original.input[0]
        shapes[twin.name] = shapes[original.name]
        twins.append((original.name, twin.name))
    return twins


# Conditions of an If. TensorFlow takes a scalar by its value, an array by being non-empty.
CONDITIONS = (
    np.bool_(True), np.bool_(False), np.int32(0), np.int32(2), np.float32(-0.0), np.float32(0.5),
    np.array(b"", object), np.array(b"no", object), np.zeros(2, np.int32), np.zeros(0, np.int32),
)  # fmt: skip


def _add_branches(
    draw: st.DrawFn, graph: pb.GraphDef, shapes: dict[str, tuple[int, ...]], dtype: Any
) -> None:
    """Add Ifs and Cases with constant conditions, over functions of a tensor with itself."""
    number = int(dtype)
    names = ("Sub", "Maximum", "Mul")
    for name in names:
        function = graph.library.function.add(ret={"z": "r:z:0"})
        function.signature.name = f"by_{name}"
        for argument in "xy":
            function.signature.input_arg.add(name=argument, type=number)
        function.signature.output_arg.add(name="z", type=number)
        body = function.node_def.add(name="r", op=name, input=["x", "y"])
        body.attr["T"].type = number
    doubled = graph.node.add(name="doubled", op="AddV2", input=["x", "x"])
    doubled.attr["T"].type = number
    is_case = draw(st.booleans())
    value = np.int32(draw(st.integers(-2, 4))) if is_case else draw(st.sampled_from(CONDITIONS))
    decides = graph.node.add(name="decides", op="Const")
    decides.attr["value"].tensor.CopyFrom(tensor_to_proto(np.asarray(value)))
    decides.attr["dtype"].type = decides.attr["value"].tensor.dtype
    is_stateless = draw(st.booleans())
    op = f"{'Stateless' if is_stateless else ''}{'Case' if is_case else 'If'}"
    branch = graph.node.add(name="branch", op=op, input=["decides", "x", "doubled"])
    branch.attr["Tin"].list.type.extend([number] * 2)
    branch.attr["Tout"].list.type.append(number)
    if is_case:
        for name in names:
            branch.attr["branches"].list.func.add(name=f"by_{name}")
    else:
        branch.attr["Tcond"].type = decides.attr["dtype"].type
        branch.attr["then_branch"].func.name, branch.attr["else_branch"].func.name = (
            f"by_{name}" for name in names[:2]
        )
    shapes["branch"] = SHAPE


@contextlib.contextmanager
def only(wanted: str | None) -> Iterator[None]:
    """Restrict the optimiser to one pass, or to none."""
    others = [name for name in PASSES if name != wanted]
    with mock.patch.multiple(optimizer, **dict.fromkeys(others, lambda *_: None)):
        yield


def run(program: Program, feeds: dict[str, Any], fetches: list[str]) -> list[Any] | str:
    """The values with their types and shapes, or the error."""
    session = new_session(SessionOptions())
    try:
        session.create(program.graph)
        found = [np.asarray(each) for each in session.run(feeds, fetches)]
        # Compared as bytes, as −0.0 == 0.0.
        return [(each.dtype, each.shape, each.tobytes()) for each in found]
    except OpError as error:
        return error.message
    finally:
        session.close()


@pytest.mark.parametrize("name", PASSES)
@settings(max_examples=100, deadline=None)
@given(program=programs(), data=st.data())
def test_a_pass_changes_nothing(name: str, program: Program, data: st.DataObject) -> None:
    some = st.lists(st.sampled_from(program.nodes), min_size=1, max_size=4)
    fetches = [*data.draw(some | st.just(program.nodes))]
    fetches += data.draw(st.sampled_from(program.twins)) if program.twins else ()
    fetches += ["branch"]
    feeds: dict[str, Any] = dict(program.feeds)
    others = sorted(set(program.nodes) - set(fetches))
    if others and data.draw(st.booleans()):  # any inner node may be fed
        fed = data.draw(st.sampled_from(others))
        with only(None):
            whole = run(program, feeds, [fed])
        if not isinstance(whole, str):
            dtype, shape, _ = whole[0]
            feeds[fed] = np.full(shape, 7, dtype)
    with only(None):
        expected = run(program, feeds, fetches)
    with only(name):
        assert run(program, feeds, fetches) == expected


@settings(max_examples=40, deadline=None)
@given(program=programs())
def test_inferred_shapes_are_those_of_the_values(program: Program) -> None:
    found = run(program, program.feeds, program.nodes)
    assert not isinstance(found, str), found
    assert [shape for _, shape, _ in found] == program.shapes
