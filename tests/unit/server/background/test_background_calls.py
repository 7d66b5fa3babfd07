"""Which calls go to the background process, and what becomes of those that it does not answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import protos as pb
from runtime.errors import NotFoundError, OpError, ResourceExhaustedError, UnavailableError
from server.background.background_calls import BackgroundCalls
from server.memory_in_flight import COUNTED_BYTES, MemoryInFlight
from server.processes.session_ids import Place
from server.rpc.call import CallContext

PREDICT = "/tensorflow.serving.PredictionService/Predict"
INFER = "/inference.GRPCInferenceService/ModelInfer"
LOW = CallContext(None, {"x-priority": "low"})
BACKGROUND = Place(1, 3)


class Host:
    background_priorities = frozenset({"low"})
    background = BACKGROUND

    def __init__(self) -> None:
        self.background_answers, self.wanted = True, 0

    def want_background(self) -> None:
        self.wanted += 1


class Models:
    """Version 7 of `model`, with the label `stable`."""

    def find(self, name: str, version: int | None, label: str | None = None) -> str:
        if name != "model" or version not in (None, 7) or label not in (None, "stable"):
            raise NotFoundError("no such version")
        return "a version"


class ReadsOnly:
    def takes(self, version: object) -> bool:
        return version == "a version"


class Calls:
    """The background process: it responds with `answer`, or `fault` is why it does not."""

    def __init__(self, answer: bytes | OpError, fault: Exception | None) -> None:
        self.fault = fault
        self.answer = answer
        self.seen: list[tuple[Place, str]] = []

    async def call(
        self, place: Place, path: str, data: bytes, context: CallContext
    ) -> bytes | OpError:
        self.seen.append((place, path))
        if self.fault is not None:
            raise self.fault
        return self.answer


def calls_of(
    host: Host, answer: bytes | OpError = b"answer", fault: Exception | None = None
) -> tuple[Any, Calls]:
    made: Any = BackgroundCalls(host, Models(), ReadsOnly())  # type: ignore[arg-type] # for this
    made._calls = Calls(answer, fault)
    return made, made._calls


def predict(
    name: str = "model", size: int = 1 << 16, version: int | None = None, label: str | None = None
) -> bytes:
    request = pb.serving.PredictRequest()
    request.model_spec.name = name
    if version is not None:
        request.model_spec.version.value = version
    if label is not None:
        request.model_spec.version_label = label
    request.inputs["x"].tensor_content = bytes(size)
    return request.SerializeToString()


def infer(name: str = "model", version: str = "", size: int = 1 << 16) -> bytes:
    request = pb.inference.ModelInferRequest(model_name=name, model_version=version)
    request.raw_input_contents.append(bytes(size))
    return request.SerializeToString()


@pytest.mark.parametrize(
    ("path", "data", "context", "is_passed"),
    [
        (PREDICT, predict(), LOW, True),
        (PREDICT, predict(version=7), LOW, True),
        (PREDICT, predict(label="stable"), LOW, True),
        (PREDICT, predict(label="canary"), LOW, False),
        (PREDICT, predict("other"), LOW, False),
        (PREDICT, predict(""), LOW, False),
        (PREDICT, predict(size=100), LOW, False),
        (PREDICT, b"\xff" * (1 << 16), LOW, False),
        (PREDICT, predict(), CallContext(None, {"x-priority": "normal"}), False),
        (PREDICT, predict(), CallContext(None, {}), False),
        (f"{PREDICT.removesuffix('Predict')}Classify", predict(), LOW, True),
        (f"{PREDICT.removesuffix('Predict')}GetModelMetadata", predict(), LOW, False),
        (INFER, infer(), LOW, True),
        (INFER, infer(version="7"), LOW, True),
        (INFER, infer(version="seven"), LOW, False),
        (INFER, infer("other"), LOW, False),
    ],
)
def test_which_calls_are_passed_on(
    path: str, data: bytes, context: CallContext, is_passed: bool
) -> None:
    host = Host()
    calls, seen = calls_of(host)
    answer = asyncio.run(calls.answer(path, data, context))
    assert answer == (b"answer" if is_passed else None)
    assert seen.seen == ([(BACKGROUND, path)] if is_passed else [])
    assert host.wanted == 0


def test_a_call_has_the_process_started_and_is_answered_here() -> None:
    host = Host()
    host.background_answers = False
    calls, seen = calls_of(host)
    assert asyncio.run(calls.answer(PREDICT, predict(), LOW)) is None
    assert (host.wanted, seen.seen) == (1, [])


@pytest.mark.parametrize(
    "fault", [ConnectionResetError("It has ended"), UnavailableError("It does not answer")]
)
def test_a_call_that_the_process_can_not_answer_is_answered_here(
    fault: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    calls, seen = calls_of(Host(), fault=fault)
    assert asyncio.run(calls.answer(PREDICT, predict(), LOW)) is None
    assert seen.seen == [(BACKGROUND, PREDICT)]
    assert f"A call of low priority is answered here: {fault}" in caplog.text


@pytest.mark.parametrize(
    "error",
    [
        UnavailableError("the queue of the batch is full"),  # not: the process is not there
        ResourceExhaustedError("the queue is full"),
        NotFoundError("no such signature"),
    ],
)
def test_the_errors_with_which_the_process_responds_are_those_of_the_call(error: OpError) -> None:
    calls, _ = calls_of(Host(), error)
    with pytest.raises(type(error), match=error.message):
        asyncio.run(calls.answer(PREDICT, predict(), LOW))


def test_a_single_message_is_taken_however_large_it_is() -> None:
    memory = MemoryInFlight(1000)
    calls, _ = calls_of(Host())

    async def scenario() -> bytes | None:
        holding = memory.begin_request()
        answer: bytes | None = await calls.answer(PREDICT, predict(size=COUNTED_BYTES), LOW)
        holding.end()
        return answer

    assert asyncio.run(scenario()) == b"answer"
