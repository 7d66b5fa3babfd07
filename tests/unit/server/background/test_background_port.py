"""What the port of the background process answers."""

from __future__ import annotations

import asyncio
import types
from typing import Any

import pytest

import protos as pb
from runtime.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from server.background.background_port import BackgroundPort
from server.rpc.call import CallContext

PREDICT = "/tensorflow.serving.PredictionService/Predict"
INFER = "/inference.GRPCInferenceService/ModelInfer"
READY = "/inference.GRPCInferenceService/ServerReady"


class Models:
    def find(self, name: str, version: int | None, label: str | None = None) -> Any:
        if name not in ("reads", "counts"):
            raise NotFoundError("no such model")
        return types.SimpleNamespace(name=name)


class Place:
    async def only_reads(self, version: Any) -> bool:
        return bool(version.name == "reads")


def predict(name: str) -> bytes:
    request = pb.serving.PredictRequest()
    request.model_spec.name = name
    return request.SerializeToString()


def answered(path: str, data: bytes, priority: str) -> None:
    port = BackgroundPort({"low", "batch"}, Models(), Place())  # type: ignore[arg-type] # for this
    context = CallContext(None, {"x-priority": priority})
    asyncio.run(port.answer(path, data, context))


@pytest.mark.parametrize(
    ("path", "data"),
    [
        (PREDICT, predict("reads")),
        (PREDICT, predict("unknown")),  # whoever parses it says so
        (PREDICT, b"\xff"),
        (INFER, pb.inference.ModelInferRequest(model_name="reads").SerializeToString()),
        (READY, b""),
    ],
)
@pytest.mark.parametrize("priority", ["low", "batch"])
def test_calls_of_its_priorities_are_answered(path: str, data: bytes, priority: str) -> None:
    answered(path, data, priority)


def test_other_priorities_are_refused() -> None:
    expected = "This port is for calls of priority batch, low, got 'normal'"
    with pytest.raises(InvalidArgumentError, match=expected):
        answered(PREDICT, predict("reads"), "normal")


@pytest.mark.parametrize(
    ("path", "data"),
    [
        (PREDICT, predict("counts")),
        (INFER, pb.inference.ModelInferRequest(model_name="counts").SerializeToString()),
    ],
)
def test_models_that_keep_state_are_refused(path: str, data: bytes) -> None:
    with pytest.raises(FailedPreconditionError, match="model counts may change or keep state"):
        answered(path, data, "low")
