"""The front end runs the same program on every target."""

from __future__ import annotations

import secrets

import pytest

from runtime.api import InvalidArgumentError
from runtime.client import (
    Graph,
    Session,
    Variable,
    cond,
    float32,
    global_variables_initializer,
    ops,
    placeholder,
    string,
    while_loop,
)


def test_a_program(target):
    suffix = secrets.token_hex(4)  # sessions of a master share variables by name
    with Graph().as_default(), Session(target.address) as session:
        x = placeholder(float32, [None], name="x")
        weight = Variable(2.0, name=f"weight_{suffix}")
        scaled = x * weight
        session.run(global_variables_initializer())
        assert session.run({"s": [scaled, scaled.op]}, {x: [1, 2]})["s"][0].tolist() == [2, 4]
        assert type(session.run(weight.assign_add(1.0))).__name__ == "float32"

        # Operations and functions that came later are sent before the run that needs them.
        chosen = cond(weight > 2, lambda: scaled + 1, lambda: scaled)
        assert session.run(chosen, {x: [1]}).tolist() == [4]
        assert session.run(while_loop(lambda i: i < weight * 4, lambda i: i + weight, [0.0])) == 12

        text = placeholder(string, name="text")
        assert session.run([text + "!"], {text: "é"}) == ["é!".encode()]
        assert session.make_callable(scaled, [x])([5]).tolist() == [15]
        assert session.list_devices()[0].device_type == "CPU"
        with pytest.raises(InvalidArgumentError):
            session.run(ops.AddV2(scaled, [1.0, 2.0]), {x: [1, 2, 3]})


def test_partial_runs(target):
    with Graph().as_default(), Session(target.address) as session:
        a, b = placeholder(float32, [], name="a"), placeholder(float32, [], name="b")
        first, second = a + 1, (a + 1) * b
        handle = session.partial_run_setup([first, second], [a, b])
        assert session.partial_run(handle, first, {a: 1}) == 2
        assert session.partial_run(handle, second, {b: 3}) == 6
