"""RemoteCall: functions on the devices of the session, and on no others."""

from __future__ import annotations

import pytest

import protos as pb
from runtime.api import InternalError, InvalidArgumentError, OpError
from runtime.client import Graph, Session, constant, float32, ops
from runtime.client.framework.function_graph import FunctionGraph
from runtime.client.framework.tensor_shape import TensorShape
from runtime.framework.dtypes import DataType

TASK = "/job:localhost/replica:0/task:0"
ELSEWHERE = "Currently don't support instantiating functions on device: "


def call_on(target: str) -> float:
    """2 · 3, computed by a function on that device of a session with two CPUs."""
    with Graph().as_default() as graph:
        double = FunctionGraph("double", graph)
        argument = double.add_argument(DataType.FLOAT, TensorShape([]))
        double.outputs = [double.build(lambda: argument * 2.0)]
        graph.add_functions(pb.FunctionDefLibrary(function=[double.to_function_def()]))
        result = ops.RemoteCall(target, [constant(3.0)], Tout=[float32], f=double.name)[0]
        with Session(config=pb.ConfigProto(device_count={"CPU": 2})) as session:
            return float(session.run(result))


@pytest.mark.parametrize("target", ["", f"{TASK}/device:CPU:0", "/cpu:0", "/device:CPU:1", "CPU:0"])
def test_devices_of_the_session(target: str) -> None:
    assert call_on(target) == 6


@pytest.mark.parametrize(
    ("target", "kind", "message"),
    [
        (
            "nonsense",
            InvalidArgumentError,
            "Could not parse nonsense into a device specification.",
        ),
        ("/device:CPU:7", InternalError, f"{ELSEWHERE}{TASK}/device:CPU:7"),
        ("/device:GPU:0", InternalError, f"{ELSEWHERE}{TASK}/device:GPU:0"),
        (
            "/job:worker/task:1/cpu:0",
            InternalError,
            f"{ELSEWHERE}/job:worker/replica:0/task:1/device:CPU:0",
        ),
    ],
)
def test_devices_elsewhere(target: str, kind: type[OpError], message: str) -> None:
    with pytest.raises(kind) as error:
        call_on(target)
    assert error.value.message.splitlines()[0] == message
