"""Large bodies are read by child processes, and answered as any other body."""

from __future__ import annotations

import asyncio
import json
import pathlib
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from runtime.api import CallResult, DataType
from runtime.errors import DeadlineExceededError
from server.codec import body_calls, body_process
from server.codec.body_process import LARGE_BYTES, named_priority
from tests.integration.echo_model import write_echo_model
from tests.integration.rest_server import HALF_PLUS_TWO, RestServer, with_server

COUNT = LARGE_BYTES // 4
NUMBERS = (np.arange(COUNT) / 8).tolist()
ROWS = [{"x": pair} for pair in (np.arange(COUNT) / 8).reshape(-1, 2).tolist()]
FILL = " " * LARGE_BYTES
READY_SECONDS = 60.0


class Watched:
    """Notes what the child returned; `is_ready` waits until it returns anything."""

    def __init__(self, server: RestServer, priority: str = "low") -> None:
        self.results: list[CallResult | None] = []
        self._priority = priority
        bodies = server.services.bodies
        process = (bodies.low if priority == "low" else bodies.normal)._process
        call = process.call

        def watched(name: str, data: Any, arrays: Sequence[np.ndarray]) -> CallResult | None:
            self.results.append(call(name, data, arrays))
            return self.results[-1]

        process.call = watched  # type: ignore[method-assign]

    async def is_ready(self, server: RestServer) -> None:
        await until_loaded(server)
        async with asyncio.timeout(READY_SECONDS):
            while not any(self.results):
                await predict(server, "FP32", {"inputs": NUMBERS}, self._priority)
                await asyncio.sleep(0.01)
        self.results.clear()


async def until_loaded(server: RestServer) -> None:
    async with asyncio.timeout(READY_SECONDS):
        while (await server.client.get("/readyz")).status_code != 200:
            await asyncio.sleep(0.01)


async def predict(
    server: RestServer, signature: str, members: dict[str, Any], priority: str
) -> tuple[int, str]:
    body = json.dumps({"signature_name": signature, **members})
    return await post(server, "/v1/models/echo:predict", body, priority)


async def post(server: RestServer, path: str, body: str, priority: str) -> tuple[int, str]:
    headers = {"X-Priority": priority, "Content-Type": "application/json"}
    answer = await server.client.post(path, content=body, headers=headers)
    id_ = answer.headers["x-request-id"]  # is in the body of an error
    return answer.status_code, answer.text.replace(id_, "ID")


def echo_settings(tmp_path: pathlib.Path) -> dict[str, Any]:
    folder = write_echo_model(tmp_path / "echo")
    return {"models": [{"name": "echo", "base_path": str(folder)}]}


# Of each body whether the child reads it; it leaves the faulty ones to the server.
PREDICTIONS = {
    "columns": ("FP32", {"inputs": NUMBERS}, True),
    "rows": ("FP64", {"instances": NUMBERS}, True),
    "objects": ("pair", {"instances": ROWS}, True),
    "strings": ("BYTES", {"inputs": ["é", {"b64": "gA=="}] * (LARGE_BYTES // 8)}, True),
    "named": ("FP32", {"inputs": {"x": NUMBERS}}, True),
    "not finite": ("FP32", {"inputs": [float("nan"), float("-inf"), *NUMBERS]}, True),
    "priority in the body": ("FP32", {"inputs": NUMBERS, "priority": "low"}, True),
    "other priority in the body": ("FP32", {"inputs": NUMBERS, "priority": "normal"}, None),
    "other within": ("FP32", {"inputs": NUMBERS, "priority": "normal", "fill": FILL}, True),
    "other, first": ("FP32", {"priority": "normal", "inputs": NUMBERS}, None),
    "empty": ("FP32", {"inputs": [], "fill": FILL}, True),
    "unknown priority": ("FP32", {"inputs": NUMBERS, "priority": "high"}, None),
    "out of range": ("INT8", {"inputs": [1000] * COUNT}, False),
    "ragged": ("FP32", {"inputs": [[1], NUMBERS]}, False),
    "no tensor": ("FP32", {"fill": FILL}, False),
    "no signature": ("missing", {"inputs": NUMBERS}, False),
    "other type": ("FP32", {"inputs": ["a", *NUMBERS]}, False),
    "wrong priority": ("FP32", {"inputs": NUMBERS, "priority": 3}, False),
    "small": ("FP32", {"inputs": [1.0]}, None),
}


def test_predictions_are_answered_alike(tmp_path: pathlib.Path) -> None:
    async def scenario(server: RestServer) -> None:
        watched = Watched(server)
        await watched.is_ready(server)
        for name, (signature, members, is_read) in PREDICTIONS.items():
            watched.results.clear()
            expected = await predict(server, signature, members, "normal")
            assert not any(watched.results) or members.get("priority") == "low", name
            watched.results.clear()
            assert await predict(server, signature, members, "low") == expected, name
            seen = [each is not None for each in watched.results]
            assert seen == ([] if is_read is None else [is_read]), name
        truncated = json.dumps({"inputs": NUMBERS})[:-1]
        for path in ("/v1/models/echo:predict", "/v1/models/missing:predict"):
            answers = [await post(server, path, truncated, each) for each in ("normal", "low")]
            assert answers[0] == answers[1]
            assert answers[0][0] in (400, 404)

    with_server(scenario, **echo_settings(tmp_path))


@pytest.mark.parametrize("priority", ["normal", "low"])
def test_very_large_predictions_are_read_and_written_by_a_child(
    priority: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(server: RestServer) -> None:
        await until_loaded(server)
        expected = [
            await predict(server, signature, members, priority)
            for signature, members, _ in PREDICTIONS.values()
        ]
        monkeypatch.setattr(body_process, "VERY_LARGE_BYTES", LARGE_BYTES)
        monkeypatch.setattr(body_process, "LARGE_RESPONSE_BYTES", 1)
        watched = Watched(server, priority)
        await watched.is_ready(server)
        answers = [
            await predict(server, signature, members, priority)
            for signature, members, _ in PREDICTIONS.values()
        ]
        assert answers == expected
        assert len([each for each in watched.results if each is not None and not each.data]) > 1

    with_server(scenario, **echo_settings(tmp_path))


RUNS = {
    "numbers": ({"feeds": {"x:0": NUMBERS}, "fetches": ["y:0"]}, True),
    "tensor": (
        {
            "feeds": {"x": {"dtype": "float32", "shape": [COUNT], "data": NUMBERS}},
            "fetches": ["y"],
            "targets": ["y"],
        },
        True,
    ),
    "options": (
        {"feeds": {"x:0": NUMBERS}, "fetches": ["y:0"], "options": {"timeout_in_ms": 50000}},
        True,
    ),
    "two values": ({"feeds": {"x:0": NUMBERS}, "fetches": ["y:0", "y:0"]}, True),
    "pool": (
        {"feeds": {"x:0": NUMBERS}, "fetches": ["y"], "options": {"inter_op_thread_pool": 0}},
        True,
    ),
    "other type": ({"feeds": {"x:0": [*NUMBERS, "a"]}, "fetches": ["y:0"]}, False),
    "unknown feed": ({"feeds": {"z:0": NUMBERS}, "fetches": ["y:0"]}, False),
    "unknown fetch": ({"feeds": {"x:0": NUMBERS}, "fetches": ["z"]}, False),
    "unknown key": ({"feeds": {"x:0": NUMBERS}, "fetches": ["y:0"], "more": 1}, False),
}


def test_steps_of_sessions_are_answered_alike(tmp_path: pathlib.Path) -> None:
    async def scenario(server: RestServer) -> None:
        watched = Watched(server)
        await watched.is_ready(server)
        session = (await server.post("/v1/sessions", HALF_PLUS_TWO)).json()["session"]
        path = f"/v1/sessions/{session}:run"
        unknown = json.dumps(RUNS["numbers"][0])
        assert (await post(server, path, unknown, "low"))[0] == 200
        assert watched.results.pop() is None  # the child can't look up a tensor
        for name, (members, is_read) in RUNS.items():
            body = json.dumps(members)
            expected = await post(server, path, body, "normal")
            assert not watched.results, name
            assert await post(server, path, body, "low") == expected, name
            assert (watched.results.pop() is not None) is is_read, name

    with_server(scenario, **echo_settings(tmp_path))


def test_nobody_waits_for_a_child_beyond_the_deadline(tmp_path: pathlib.Path) -> None:
    body = json.dumps({"signature_name": "FP32", "inputs": [None] * 1_000_000})

    async def scenario(server: RestServer) -> None:
        watched = Watched(server)
        await watched.is_ready(server)
        headers = {"X-Priority": "low", "X-Timeout-Ms": "60"}
        path = "/v1/models/echo:predict"
        answer = await server.client.post(path, content=body, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (504, "DEADLINE_EXCEEDED")
        async with asyncio.timeout(READY_SECONDS):
            while None not in watched.results:
                await asyncio.sleep(0.01)

    with_server(scenario, **echo_settings(tmp_path))


def test_reading_in_a_child_ends_by_itself() -> None:
    body = np.frombuffer(b'{"inputs": [%b]}' % b",".join([b"null"] * 1_000_000), np.uint8)
    types = {"serving_default": {"x": int(DataType.FLOAT)}}
    began = time.thread_time()
    with pytest.raises(DeadlineExceededError):
        body_calls.CALLS["predict"]({"strict": False, "types": types, "seconds": 0.002}, [body])
    assert time.thread_time() - began < 0.1


def test_without_its_child_the_server_reads_all(tmp_path: pathlib.Path) -> None:
    async def scenario(server: RestServer) -> None:
        server.services.bodies.close()
        await until_loaded(server)
        expected = await predict(server, "FP32", {"inputs": NUMBERS}, "normal")
        assert expected[0] == 200
        assert await predict(server, "FP32", {"inputs": NUMBERS}, "low") == expected

    with_server(scenario, **echo_settings(tmp_path))


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b'{"priority": "low", "inputs": [' + b"1," * LARGE_BYTES + b"1]}", "low"),
        (b'{"inputs": [' + b"1," * LARGE_BYTES + b'1], "priority":"low"}', "low"),
        (b'{"inputs": [' + b"1," * LARGE_BYTES + b"1]}", None),
    ],
    ids=["first", "last", "none"],
)
def test_a_priority_is_found_at_the_ends_of_a_body(body: bytes, name: str | None) -> None:
    assert named_priority(body) == name
