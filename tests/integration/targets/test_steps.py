"""Feeds, fetches and targets of a step: what is allowed, and every type of tensor."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import protos as pb
from runtime.api import DataType, RunRequest
from tests.integration.targets.graphs import chain, identity
from tests.integration.targets.target import Target

X = {"x:0": np.float32(3)}
LARGE = 2 << 20  # floats: 8 MB, over gRPC's usual limit of 4


def test_fetches_come_in_the_order_of_the_request(target: Target) -> None:
    session = target.session(chain())
    assert session.run(X, ["n:0", "a:0", "m:0"]) == [-6, 2, 6]
    assert session.run({"x": np.float32(1)}, ["m", "m:0", "m"]) == [2, 2, 2]


def test_any_tensor_may_be_fed(target: Target) -> None:
    session = target.session(chain())
    assert session.run({"m:0": np.float32(5)}, ["n:0"]) == [-5]


def test_targets_run_without_an_answer(target: Target) -> None:
    assert target.session(chain()).run(X, [], ["n"]) == []


@pytest.mark.parametrize(
    ("case", "feeds", "fetches", "targets"),
    [
        ("nothing to run", {}, [], []),
        ("unknown fetch", X, ["nowhere:0"], []),
        ("fetch of an output that the node lacks", X, ["n:1"], []),
        ("unknown feed", {"nowhere:0": np.float32(1)}, ["a:0"], []),
        ("unknown target", X, [], ["nowhere"]),
        ("fed and fetched", X, ["x:0"], []),
        ("placeholder not fed", {}, ["n:0"], []),
        ("feed of the wrong type", {"x:0": np.int32(1)}, ["n:0"], []),
    ],
)
def test_a_wrong_step_is_refused(
    target: Target, case: str, feeds: dict, fetches: list, targets: list
) -> None:
    session = target.session(chain())
    with target.raises(case):
        session.run(feeds, fetches, targets)
    assert session.run(X, ["n:0"]) == [-6]


def test_an_error_of_a_kernel_names_its_node(target: Target) -> None:
    with target.raises("shapes that do not fit"):
        target.session(_sum_of_two()).run({"x:0": np.zeros(2, np.float32)}, ["sum:0"])


def _sum_of_two() -> pb.GraphDef:
    graph = identity(DataType.FLOAT)
    three = graph.node.add(name="three", op="Const")
    three.attr["dtype"].type = DataType.FLOAT
    value = three.attr["value"].tensor
    value.dtype = DataType.FLOAT
    value.tensor_shape.dim.add(size=3)
    value.float_val.append(1)
    added = graph.node.add(name="sum", op="AddV2", input=["x", "three"])
    added.attr["T"].type = DataType.FLOAT
    return graph


VALUES = {
    "bool": np.array([[True], [False]]),
    "uint8": np.array([0, 255], np.uint8),
    "int64": np.array([-(2**63), 2**63 - 1]),
    "uint64": np.array([2**64 - 1], np.uint64),
    "half": np.array([1.5, np.inf, -0.0], np.float16),
    "bfloat16": np.array([1.5, -3e38], ml_dtypes.bfloat16),
    "float": np.array([np.nan, 1e-45], np.float32),
    "double": np.array(np.pi),
    "complex64": np.array([1 + 2j, -1j], np.complex64),
    "complex128": np.array([[1e300 - 1j]]),
    "string": np.array([b"", b"\x00zero\x00", "grün".encode()], object),
    "empty": np.empty((0, 3), np.float32),
    "empty strings": np.empty((2, 0), object),
}


@pytest.mark.parametrize("name", VALUES)
def test_every_type_of_tensor_goes_in_and_out(target: Target, name: str) -> None:
    value = VALUES[name]
    dtype = DataType.STRING if value.dtype == object else value.dtype
    (y,) = target.session(identity(dtype)).run({"x:0": value}, ["y:0"])
    assert y.dtype == value.dtype and y.shape == value.shape
    if value.dtype == object:
        assert y.tolist() == value.tolist()
    else:
        assert y.tobytes() == value.tobytes()


def test_large_tensors_go_in_and_out(target: Target) -> None:
    session = target.session(chain())
    x = np.arange(LARGE, dtype=np.float32)
    (m,) = session.run({"x:0": x}, ["m:0"])
    np.testing.assert_array_equal(m, x * 2)


def test_a_large_graph_may_be_created(target: Target) -> None:
    graph = identity(DataType.FLOAT)
    large = graph.node.add(name="large", op="Const")
    large.attr["dtype"].type = DataType.FLOAT
    value = large.attr["value"].tensor
    value.dtype = DataType.FLOAT
    value.tensor_shape.dim.add(size=LARGE)
    value.tensor_content = np.ones(LARGE, np.float32).tobytes()
    (fetched,) = target.session(graph).run({}, ["large:0"])
    assert fetched.shape == (LARGE,) and fetched[-1] == 1


def test_steps_run_side_by_side(target: Target) -> None:
    session = target.session(chain())
    futures = [
        session.run_async(RunRequest({"x:0": np.float32(number)}, ["m:0"])) for number in range(40)
    ]
    assert [future.result(30)[0] for future in futures] == [2 * n for n in range(40)]
