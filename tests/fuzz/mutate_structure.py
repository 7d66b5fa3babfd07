"""Mutations of graphs of every kind of op: their edges, ops, names, functions and messages.

Pure: the same random numbers give the same mutations.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Sequence

import numpy as np

import protos as pb
from runtime.errors import OpError
from runtime.framework import op_def_registry
from tests.fuzz.mutate_bytes import mutated_bytes
from tests.fuzz.mutate_graphs import (
    FLOATS,
    INTEGERS,
    MUTATIONS,
    Hostile,
    change_attribute,
    change_constant,
    change_feed,
)
from tests.fuzz.mutate_messages import mutate_message

_STRINGS = (
    *(b"", b"\0", b"a", b"-1", b"1e400", b"nan", b"\xff\xfe", b"\xf0\x9f\x98\x80", b"x" * 10_000),
    *(b"(a*)*b", b"[", b"\\", b"%d", b"../..", b"/etc/passwd", b"a,b,,c", b"{}", b"0" * 400),
)  # fmt: skip
_NUMPY = (
    *(np.float32, np.float64, np.int32, np.int64, np.bool_, np.uint8, np.int8, np.complex64),
    *(np.float16, np.uint64, np.int16),
)  # fmt: skip
_SPLICED = "spliced_"


def mutate_structure(
    made: Hostile, random_state: random.Random, others: Sequence[Hostile] = ()
) -> None:
    """Change the graph, the feeds or the fetches in one way; `others` may give it their nodes."""
    if others and random_state.random() < 0.1:
        _splice(made, random_state.choice(others), random_state)
        return
    kind = random_state.random()
    # Most graphs whose structure changes are refused before a kernel runs.
    mutations = _VALUES if kind < 0.6 else MUTATIONS if kind < 0.75 else _STRUCTURAL
    # Earlier mutations may have left tensors and ops that this one can't read.
    with contextlib.suppress(OpError, ValueError, TypeError, LookupError):
        random_state.choice(mutations)(made, random_state)


def _splice(made: Hostile, other: Hostile, random_state: random.Random) -> None:
    """Add the nodes of another graph, and connect an input of one of them to this graph."""
    names = {node.name for node in other.graph.node}
    if len(names) > 100 or any(node.name.startswith(_SPLICED) for node in made.graph.node):
        return
    outputs = _outputs(made)
    added = []
    for node in other.graph.node:
        copied = made.graph.node.add()
        copied.CopyFrom(node)
        copied.name = _SPLICED + node.name
        copied.input[:] = [_prefixed(each, names) for each in node.input]
        added.append(copied)
    known = {each.signature.name for each in made.graph.library.function}
    made.graph.library.function.extend(
        each for each in other.graph.library.function if each.signature.name not in known
    )
    made.feeds |= {_SPLICED + name: value for name, value in other.feeds.items()}
    made.fetches += [_SPLICED + name for name in other.fetches]
    takers = [node for node in added if node.input]
    if takers and outputs:
        taker = random_state.choice(takers)
        taker.input[random_state.randrange(len(taker.input))] = random_state.choice(outputs)


def _prefixed(name: str, names: set[str]) -> str:
    bare = name.removeprefix("^")
    if bare.partition(":")[0] not in names:
        return name
    return f"^{_SPLICED}{bare}" if name.startswith("^") else f"{_SPLICED}{bare}"


def _outputs(made: Hostile) -> list[str]:
    """Return the outputs of all nodes, and a few that they may not have."""
    names = [node.name for node in made.graph.node]
    return [*names * 5, *(f"{name}:1" for name in names)]


def _some_node(made: Hostile, random_state: random.Random) -> pb.NodeDef | None:
    nodes = [*made.graph.node]
    nodes += [node for each in made.graph.library.function for node in each.node_def]
    return random_state.choice(nodes) if nodes else None


def _swap_op(made: Hostile, random_state: random.Random) -> None:
    """Give a node another op with as many inputs, and the attributes that this op needs."""
    node = _some_node(made, random_state)
    op_def = None if node is None else op_def_registry.find(node.op)
    if node is None or op_def is None:
        return
    others = _ops_by_inputs()[len(op_def.input_arg)]
    node.op = random_state.choice(others)
    new = op_def_registry.look_up(node.op)
    wanted = {attr.name for attr in new.attr}
    types = [value.type for value in node.attr.values() if value.WhichOneof("value") == "type"]
    for name in [name for name in node.attr if name not in wanted and not name.startswith("_")]:
        del node.attr[name]
    for attr in new.attr:
        if attr.name in node.attr:
            continue
        if attr.HasField("default_value"):
            node.attr[attr.name].CopyFrom(attr.default_value)
        elif attr.type == "type":
            node.attr[attr.name].type = random_state.choice(types or [pb.DT_FLOAT])
        elif attr.type == "int":
            node.attr[attr.name].i = random_state.choice((1, 2, 1, 0))
        elif attr.type == "shape":
            node.attr[attr.name].shape.SetInParent()
        elif attr.type.startswith("list"):
            node.attr[attr.name].list.SetInParent()
        elif attr.type == "string":
            node.attr[attr.name].s = b""


def _ops_by_inputs() -> dict[int, list[str]]:
    if not _by_inputs:
        for name, op_def in sorted(op_def_registry.all_op_defs().items()):
            _by_inputs.setdefault(len(op_def.input_arg), []).append(name)
    return _by_inputs


_by_inputs: dict[int, list[str]] = {}


def _rewire_any(made: Hostile, random_state: random.Random) -> None:
    """Connect an input to any output, also of a later node, so that there are cycles."""
    takers = [node for node in made.graph.node if node.input]
    if takers:
        node = random_state.choice(takers)
        given = random_state.choice(_outputs(made))
        if random_state.random() < 0.2:
            given = f"^{given.partition(':')[0]}"
        node.input[random_state.randrange(len(node.input))] = given


def _change_inputs(made: Hostile, random_state: random.Random) -> None:
    """Take an input from a node, or give it one more."""
    node = _some_node(made, random_state)
    if node is None:
        return
    if node.input and random_state.random() < 0.5:
        del node.input[random_state.randrange(len(node.input))]
    else:
        node.input.append(random_state.choice(_outputs(made)))


def _drop_node(made: Hostile, random_state: random.Random) -> None:
    if len(made.graph.node) > 1:
        del made.graph.node[random_state.randrange(len(made.graph.node))]


def _message(made: Hostile, random_state: random.Random) -> None:
    """Change any field of a node, or of the library of functions."""
    functions = made.graph.library.function
    node = _some_node(made, random_state)
    if functions and random_state.random() < 0.3:
        mutate_message(random_state.choice(functions), random_state)
    elif node is not None:
        mutate_message(node, random_state)


def _feed_type(made: Hostile, random_state: random.Random) -> None:
    if made.feeds:
        name = random_state.choice(sorted(made.feeds))
        array = made.feeds[name]
        with np.errstate(all="ignore"):
            if array.dtype == object:
                made.feeds[name] = np.zeros(array.shape, random_state.choice(_NUMPY))
            else:
                made.feeds[name] = array.astype(random_state.choice(_NUMPY))


def _feed_strings(made: Hostile, random_state: random.Random) -> None:
    """Change one of the strings that are fed."""
    names = [name for name in sorted(made.feeds) if made.feeds[name].dtype == object]
    names = [name for name in names if made.feeds[name].size]
    if not names:
        return
    name = random_state.choice(names)
    array = made.feeds[name].copy()
    at = random_state.randrange(array.size)
    given = array.reshape(-1)[at]
    if random_state.random() < 0.5:
        array.reshape(-1)[at] = mutated_bytes(bytes(given), random_state)
    else:
        array.reshape(-1)[at] = random_state.choice(_STRINGS)
    made.feeds[name] = array


def _feed_any(made: Hostile, random_state: random.Random) -> None:
    """Feed a tensor inside the graph with what another is fed with."""
    values = [made.feeds[name] for name in sorted(made.feeds)] or [np.ones(2, np.float32)]
    made.feeds[random_state.choice(_outputs(made) or ["x"])] = random_state.choice(values)


def _fetch_any(made: Hostile, random_state: random.Random) -> None:
    made.fetches.append(random_state.choice(_outputs(made) or ["x"]))


def _exchange_feeds(made: Hostile, random_state: random.Random) -> None:
    names = sorted(made.feeds)
    if len(names) > 1:
        one, other = random_state.sample(names, 2)
        made.feeds[one], made.feeds[other] = made.feeds[other], made.feeds[one]


def _feed_one_number(made: Hostile, random_state: random.Random) -> None:
    """Replace all elements of a feed by one number."""
    names = [name for name in sorted(made.feeds) if made.feeds[name].dtype != object]
    if names:
        name = random_state.choice(names)
        array = made.feeds[name]
        numbers = FLOATS if array.dtype.kind in "fcV" else INTEGERS
        with np.errstate(all="ignore"):
            number = np.array(random_state.choice(numbers)).astype(array.dtype)
        made.feeds[name] = np.full(array.shape, number, array.dtype)


_VALUES: tuple[Callable[[Hostile, random.Random], None], ...] = (
    *(change_attribute, change_attribute, change_constant, change_feed, change_feed, change_feed),
    *(_feed_one_number, _feed_strings, _feed_strings, _exchange_feeds),
)
_STRUCTURAL: tuple[Callable[[Hostile, random.Random], None], ...] = (
    _swap_op,
    _swap_op,
    _rewire_any,
    _change_inputs,
    _drop_node,
    _message,
    _message,
    _feed_type,
    _feed_any,
    _fetch_any,
)
