"""The Open Inference Protocol over HTTP: every call, the binary extension, errors."""

from __future__ import annotations

import asyncio
import functools
import gzip
import json
import logging
import math
import zlib
from collections.abc import Callable, Coroutine
from typing import Any

import httpx
import ml_dtypes
import numpy as np
import pytest

from runtime.sessions.direct import short_step
from server.inference_protocol.service import SHARED_MEMORY
from server.models.inference_service import InferenceService
from server.models.version_states import ModelState
from server.steps.step_request import StepRequest
from server.steps.step_runner import StepRunner
from tests.integration.echo_model import TYPES, write_echo_model
from tests.integration.rest_server import RestServer, with_server

HALF = {"name": "half_plus_two", "base_path": "examples/models/half_plus_two"}
INFER = "/v2/models/half_plus_two/infer"
ECHO = "/v2/models/echo/infer"
X = {"name": "x", "shape": [3], "datatype": "FP32", "data": [1.0, 2.0, 5.0]}
LENGTH = "inference-header-content-length"
Scenario = Callable[[RestServer], Coroutine[Any, Any, None]]


def served(scenario: Scenario, models: list[dict[str, str]] | None = None, **settings: Any) -> None:
    """Run a scenario against a server whose models are loaded."""

    async def run(server: RestServer) -> None:
        assert await asyncio.to_thread(server.services.models.wait_until_settled, 60)
        await scenario(server)

    with_server(run, models=[HALF] if models is None else models, **settings)


def echo(folder: Any) -> list[dict[str, str]]:
    return [{"name": "echo", "base_path": str(write_echo_model(folder / "echo"))}]


def refused(answer: httpx.Response, status: int, text: str) -> None:
    """The answer is the protocol's error: `{"error"}` alone."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert list(body) == ["error"] and text in body["error"], body


def binary(header: dict[str, Any], *tensors: bytes) -> dict[str, Any]:
    """The content and headers of a request with binary tensors."""
    head = json.dumps(header).encode()
    return {"content": head + b"".join(tensors), "headers": {LENGTH: str(len(head))}}


def parts(answer: httpx.Response) -> tuple[dict[str, Any], bytes]:
    """The JSON and the binary data of a response."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/octet-stream"
    length = int(answer.headers[LENGTH])
    return json.loads(answer.content[:length]), answer.content[length:]


# --- descriptions -------------------------------------------------------------------------------


def test_health_metadata_config_and_readiness() -> None:
    async def scenario(server: RestServer) -> None:
        async def get(path: str) -> Any:
            answer = await server.client.get(path)
            assert answer.status_code == 200, answer.text
            return answer.json()

        assert await get("/v2/health/live") == {"live": True}
        assert await get("/v2/health/ready") == {"ready": True}
        about = await get("/v2")
        assert about["name"] == "runstep" and "binary_tensor_data" in about["extensions"]
        tensors = {
            "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1]}],
            "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1]}],
        }
        known = {
            "name": "half_plus_two",
            "versions": ["1"],
            "platform": "tensorflow_savedmodel",
            **tensors,
        }
        for path in ("/v2/models/half_plus_two", "/v2/models/half_plus_two/versions/1"):
            assert await get(path) == known
            assert await get(f"{path}/ready") == {"name": "half_plus_two", "ready": True}
            config = await get(f"{path}/config")
            assert config["backend"] == "tensorflow" and config["max_batch_size"] == 0
            assert config["input"] == [{"name": "x", "data_type": "TYPE_FP32", "dims": [-1]}]
        chosen = await get("/v2/models/half_plus_two?signature_name=regress_x_to_y")
        assert chosen["inputs"][0]["datatype"] == "BYTES"
        refused(await server.client.get("/v2/models/nope"), 404, "Latest(nope)")
        refused(await server.client.get("/v2/models/nope/ready"), 404, "of model nope")
        refused(
            await server.client.get("/v2/models/half_plus_two/versions/9"),
            404,
            "Specific(half_plus_two, 9)",
        )
        refused(
            await server.client.get("/v2/models/half_plus_two/versions/9/ready"), 404, "version 9"
        )
        refused(
            await server.client.get("/v2/models/half_plus_two/versions/x"),
            400,
            "The version must be a number, got 'x'",
        )
        refused(
            await server.client.get("/v2/models/half_plus_two?signature_name=z"),
            400,
            "known are classify_x_to_y",
        )

    served(scenario)


def test_a_model_that_failed_to_load_is_not_ready(tmp_path: Any) -> None:
    (tmp_path / "broken" / "1").mkdir(parents=True)
    models = [HALF, {"name": "broken", "base_path": str(tmp_path / "broken")}]

    async def scenario(server: RestServer) -> None:
        answer = await server.client.get("/v2/models/broken/ready")
        assert (answer.status_code, answer.json()) == (503, {"name": "broken", "ready": False})
        answer = await server.client.get("/v2/health/ready")
        assert (answer.status_code, answer.json()) == (503, {"ready": False})
        index = (await server.post("/v2/repository/index")).json()
        assert [(each["name"], each["state"]) for each in index] == [
            ("half_plus_two", "READY"),
            ("broken", "UNAVAILABLE"),
        ]
        assert "Could not find SavedModel" in index[1]["reason"]
        ready = (await server.post("/v2/repository/index", {"ready": True})).json()
        assert [each["name"] for each in ready] == ["half_plus_two"]

    served(scenario, models, model_loading={"max_retries": 0})


def test_unknown_paths_and_wrong_methods() -> None:
    async def scenario(server: RestServer) -> None:
        refused(await server.client.get("/v2/nothing"), 404, "No such path")
        answer = await server.client.get(INFER)
        refused(answer, 405, "POST")
        assert answer.headers["allow"] == "POST"
        refused(await server.client.delete("/v2/trace/setting"), 405, "GET, POST")
        refused(await server.client.get("/v2/models/%FF"), 400, "The path is not UTF-8")

    served(scenario)


# --- inference ----------------------------------------------------------------------------------


def test_infer_echoes_the_id_and_returns_flat_data() -> None:
    async def scenario(server: RestServer) -> None:
        answer = await server.post(INFER, {"id": "seven", "inputs": [X]})
        assert answer.headers["content-type"] == "application/json"
        assert answer.json() == {
            "model_name": "half_plus_two",
            "model_version": "1",
            "id": "seven",
            "outputs": [{"name": "y", "datatype": "FP32", "shape": [3], "data": [2.5, 3.0, 4.5]}],
        }
        body = {"inputs": [X], "outputs": [{"name": "y"}]}
        answer = await server.post("/v2/models/half_plus_two/versions/1/infer", body)
        assert "id" not in answer.json()
        assert answer.json()["outputs"][0]["data"] == [2.5, 3.0, 4.5]

    served(scenario)


def test_a_short_step_gives_the_same_response(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_step, "INLINE_SECONDS", 1e9)
    answers: list[Any] = []
    predict_short = InferenceService.predict_short

    def noted(self: InferenceService, *arguments: Any) -> Any:
        answers.append(predict_short(self, *arguments))
        return answers[-1]

    monkeypatch.setattr(InferenceService, "predict_short", noted)

    async def scenario(server: RestServer) -> None:
        texts = set()
        while not any(answers):
            texts.add((await server.post(INFER, {"inputs": [X]})).text)
        assert len(texts) == 1
        count = len(answers)
        refused(await server.post(INFER, {"inputs": [{**X, "shape": [4]}]}), 400, "Expected 4")
        low = {"inputs": [X], "parameters": {"priority": "low"}}
        assert (await server.post(INFER, low)).text in texts
        assert len(answers) == count
        stats = (await server.client.get("/v2/models/half_plus_two/stats")).json()
        assert stats["model_stats"][0]["inference_stats"]["fail"]["count"] == 1

    served(scenario)


# Elements in JSON, and as they come back; FP16 and BF16 round.
ELEMENTS: dict[str, tuple[list[Any], list[Any]]] = {
    "BOOL": ([True, False], [True, False]),
    "UINT8": ([0, 255], [0, 255]),
    "UINT16": ([0, 65535], [0, 65535]),
    "UINT32": ([0, 2**32 - 1], [0, 2**32 - 1]),
    "UINT64": ([0, 2**64 - 1], [0, 2**64 - 1]),
    "INT8": ([-128, 127], [-128, 127]),
    "INT16": ([-(2**15), 2**15 - 1], [-(2**15), 2**15 - 1]),
    "INT32": ([-(2**31), 2**31 - 1], [-(2**31), 2**31 - 1]),
    "INT64": ([-(2**63), 2**63 - 1], [-(2**63), 2**63 - 1]),
    "FP16": ([0.5, "Infinity"], [0.5, "Infinity"]),
    "BF16": ([0.5, 3], [0.5, 3.0]),
    "FP32": ([0.1, "NaN"], [0.1, "NaN"]),
    "FP64": ([0.1, "-Infinity"], [0.1, "-Infinity"]),
    "BYTES": (["ä", {"b64": "/w=="}], ["ä", {"b64": "/w=="}]),
}
ARRAYS: dict[str, np.ndarray] = {
    "FP16": np.array([0.5, math.inf], np.float16),
    "BF16": np.array([0.5, 3], ml_dtypes.bfloat16),
    "FP32": np.array([0.1, math.nan], np.float32),
    "FP64": np.array([0.1, -math.inf]),
}


def raw_bytes(datatype: str) -> bytes:
    """The elements of ELEMENTS as binary data."""
    if datatype == "BYTES":
        return b"\2\0\0\0" + "ä".encode() + b"\1\0\0\0\xff"
    if datatype in ARRAYS:
        return ARRAYS[datatype].tobytes()
    return np.array(ELEMENTS[datatype][0], TYPES[datatype].numpy).tobytes()


def test_every_datatype_passes_unchanged_as_json_and_as_binary_data(tmp_path: Any) -> None:
    async def scenario(server: RestServer) -> None:
        for datatype, (sent, returned) in ELEMENTS.items():
            head = {"name": "x", "shape": [2, 1], "datatype": datatype}
            parameters = {"signature_name": datatype}
            for data in (sent, [[each] for each in sent]):  # flat, nested
                body = {"parameters": parameters, "inputs": [{**head, "data": data}]}
                output = (await server.post(ECHO, body)).json()["outputs"][0]
                assert output == {**head, "name": "y", "data": returned}, datatype
            raw = raw_bytes(datatype)
            request = {
                "parameters": {**parameters, "binary_data_output": True},
                "inputs": [{**head, "parameters": {"binary_data_size": len(raw)}}],
            }
            header, content = parts(await server.client.post(ECHO, **binary(request, raw)))
            assert content == raw, datatype
            assert header["outputs"] == [
                {**head, "name": "y", "parameters": {"binary_data_size": len(raw)}}
            ]

    served(scenario, echo(tmp_path))


def test_an_output_may_be_binary_though_the_request_is_not_and_the_other_way_round() -> None:
    async def scenario(server: RestServer) -> None:
        body: dict[str, Any] = {
            "inputs": [X],
            "outputs": [{"name": "y", "parameters": {"binary_data": True}}],
        }
        _, content = parts(await server.post(INFER, body))
        assert np.frombuffer(content, "<f4").tolist() == [2.5, 3.0, 4.5]
        body["outputs"][0]["parameters"]["binary_data"] = False
        body["parameters"] = {"binary_data_output": True}
        answer = await server.post(INFER, body)
        assert LENGTH not in answer.headers
        assert answer.json()["outputs"][0]["data"] == [2.5, 3.0, 4.5]

    served(scenario)


def test_a_body_of_raw_bytes_is_the_only_input(tmp_path: Any) -> None:
    models = [HALF, *echo(tmp_path)]

    async def scenario(server: RestServer) -> None:
        raw = np.array([1, 2, 5], "<f4").tobytes()
        answer = await server.client.post(INFER, content=raw, headers={LENGTH: "0"})
        header, content = parts(answer)
        assert header["outputs"][0]["shape"] == [3]
        assert np.frombuffer(content, "<f4").tolist() == [2.5, 3.0, 4.5]
        answer = await server.client.post(INFER, content=raw[:-1], headers={LENGTH: "0"})
        refused(answer, 400, "Expected 8 bytes for shape [2] of float32, got 11")

    served(scenario, models)


def test_the_signature_the_priority_and_the_deadline_are_parameters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[StepRequest] = []
    run = StepRunner.run

    async def noted(self: StepRunner, session: Any, request: StepRequest, **rest: Any) -> Any:
        steps.append(request)
        return await run(self, session, request, **rest)

    monkeypatch.setattr(StepRunner, "run", noted)
    monkeypatch.setattr(InferenceService, "predict_short", lambda *_: None)

    async def scenario(server: RestServer) -> None:
        async def infer(parameters: dict[str, Any], **headers: str) -> httpx.Response:
            body = {"inputs": [X], "parameters": parameters}
            return await server.post(INFER, body, headers=headers)

        headers = {"X-Priority": "normal", "X-Timeout-Ms": "5000"}
        assert (await infer({"priority": 2, "timeout": 2_000_001}, **headers)).status_code == 200
        assert (steps[-1].priority, steps[-1].timeout_ms) == (2, 2001)
        assert (await infer({"priority": "low"})).status_code == 200
        assert (steps[-1].priority, steps[-1].timeout_ms) == ("low", 30000)
        assert (await infer({"priority": 0, "timeout": 0}, **headers)).status_code == 200
        assert (steps[-1].priority, steps[-1].timeout_ms) == (0, 5000)
        assert (await infer({"signature_name": "serving_default"})).status_code == 200
        refused(await infer({"signature_name": "nope"}), 400, '"nope" not found')
        refused(await infer({"signature_name": 3}), 400, "signature_name must be a string")
        refused(await infer({"priority": "highest"}), 400, "Unknown priority 'highest'")
        refused(await infer({"priority": 3}), 400, "Unknown priority 3")
        refused(await infer({"priority": -1}), 400, "priority must be an integer of 0 or more")
        refused(await infer({"priority": True}), 400, "priority must be an integer of 0 or more")
        refused(await infer({"timeout": 1.5}), 400, "timeout must be an integer of 0 or more")
        refused(await infer({"sequence_id": 7}), 501, "sequence_id")
        assert (await infer({"sequence_id": 0, "my_own": "x"})).status_code == 200

    served(scenario)


def test_a_deadline_that_passes_is_504(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(server: RestServer) -> None:
        body = {"inputs": [X], "parameters": {"timeout": 1}}

        real = StepRunner.run

        async def late(self: StepRunner, session: Any, request: StepRequest, **rest: Any) -> Any:
            request.received_at -= 1
            return await real(self, session, request, **rest)

        monkeypatch.setattr(StepRunner, "run", late)
        monkeypatch.setattr(InferenceService, "predict_short", lambda *_: None)
        answer = await server.post(INFER, body)
        assert answer.status_code == 504, answer.text
        assert list(answer.json()) == ["error"]
        stats = (await server.client.get("/v2/models/half_plus_two/stats")).json()
        assert stats["model_stats"][0]["inference_stats"]["fail"]["count"] == 1

    served(scenario)


def test_classification_returns_the_highest_elements(tmp_path: Any) -> None:
    async def scenario(server: RestServer) -> None:
        head = {"name": "x", "datatype": "FP32"}

        async def classified(signature: str, data: list[Any], shape: list[int]) -> Any:
            body = {
                "parameters": {"signature_name": signature},
                "inputs": [{**head, "shape": shape, "data": data}],
                "outputs": [{"name": "y", "parameters": {"classification": 2}}],
            }
            return (await server.post(ECHO, body)).json()["outputs"][0]

        whole = await classified("FP32", [0.25, 3, -1], [3])
        assert whole == {
            "name": "y", "datatype": "BYTES", "shape": [2], "data": ["3.000000:1", "0.250000:0"],
        }  # fmt: skip
        rows = await classified("pair", [1, 2, 4, 3], [2, 2])
        assert rows["shape"] == [2, 2]
        assert rows["data"] == ["2.000000:1", "1.000000:0", "4.000000:0", "3.000000:1"]

    served(scenario, echo(tmp_path))


FAULTS: dict[str, tuple[Any, str]] = {
    "no object": ([1], "The body must be a JSON object, got a list"),
    "no json": (b"{", "not valid JSON"),
    "id": ({"id": 3, "inputs": [X]}, "id must be a string"),
    "inputs no list": ({"inputs": {}}, "inputs must be a list"),
    "no inputs": ({}, "Missing but required: {x}"),
    "no name": ({"inputs": [{"shape": [1]}]}, "inputs[0] must have a name"),
    "unknown input": ({"inputs": [{**X, "name": "z"}]}, "Sent extra: {z}"),
    "twice": ({"inputs": [X, X]}, "Input 'x' is given twice"),
    "datatype": ({"inputs": [{**X, "datatype": "INT32"}]}, "is INT32, but the model expects FP32"),
    "unknown datatype": ({"inputs": [{**X, "datatype": "FP8"}]}, "Unknown datatype 'FP8'"),
    "no datatype": ({"inputs": [{**X, "datatype": None}]}, "datatype must be a string"),
    "shape": ({"inputs": [{**X, "shape": [-1]}]}, "shape must be a list of non-negative"),
    "no shape": ({"inputs": [{**X, "shape": None}]}, "shape must be a list of non-negative"),
    "count": ({"inputs": [{**X, "shape": [4]}]}, "Expected 4 elements for shape [4]"),
    "ragged": ({"inputs": [{**X, "data": [[1], [2, 3]]}]}, "lists of equal length"),
    "text": ({"inputs": [{**X, "data": [1, 2, "three"]}]}, "Expected a number at element 2"),
    "no data": ({"inputs": [{"name": "x", "shape": [1], "datatype": "FP32"}]}, "got neither"),
    "unknown output": ({"inputs": [X], "outputs": [{"name": "z"}]}, "Unknown output 'z'"),
    "output twice": ({"inputs": [X], "outputs": [{"name": "y"}] * 2}, "'y' is requested twice"),
    "parameters": ({"inputs": [X], "parameters": [1]}, "parameters must be an object"),
    "flag": ({"inputs": [X], "parameters": {"binary_data_output": 1}}, "must be true or false"),
}


def test_what_does_not_fit_the_protocol_or_the_model_is_400() -> None:
    async def scenario(server: RestServer) -> None:
        for body, text in FAULTS.values():
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            refused(await server.client.post(INFER, content=content), 400, text)
        shared = {**X, "parameters": {"shared_memory_region": "r"}}
        refused(await server.post(INFER, {"inputs": [shared]}), 501, "is in shared memory")
        huge = {**X, "shape": [1 << 40]}
        refused(await server.post(INFER, {"inputs": [huge]}), 429, "the limit is")
        refused(await server.post("/v2/models/nope/infer", {"inputs": [X]}), 404, "Latest(nope)")

    served(scenario)


def test_binary_data_that_does_not_fit_is_400() -> None:
    async def scenario(server: RestServer) -> None:
        def request(size: Any) -> dict[str, Any]:
            head = {"name": "x", "shape": [1], "datatype": "FP32"}
            return {"inputs": [{**head, "parameters": {"binary_data_size": size}}]}

        async def post(size: Any, content: bytes) -> httpx.Response:
            return await server.client.post(INFER, **binary(request(size), content))

        refused(await post(5, b"1234"), 400, "binary_data_size is 5, but the body has 4 bytes")
        refused(await post(4, b"12345"), 400, "has 1 bytes after those of its binary tensors")
        refused(await post(3, b"123"), 400, "Expected 4 bytes for shape [1] of float32, got 3")
        refused(await post(-1, b""), 400, "binary_data_size must be an integer of 0 or more")
        refused(await post("4", b"1234"), 400, "binary_data_size must be an integer of 0 or more")
        for length in ("99", "x", "-1"):
            answer = await server.client.post(INFER, content=b"{}", headers={LENGTH: length})
            refused(answer, 400, "must be at most the body's length 2")

    served(scenario)


def test_complex_numbers_have_no_datatype(tmp_path: Any) -> None:
    async def scenario(server: RestServer) -> None:
        body = {"inputs": [X], "parameters": {"signature_name": "complex"}}
        refused(await server.post(ECHO, body), 501, "has no datatype")
        metadata = await server.client.get("/v2/models/echo?signature_name=complex")
        assert metadata.json()["inputs"] == [{"name": "x", "datatype": "COMPLEX64", "shape": [-1]}]
        config = await server.client.get("/v2/models/echo/config?signature_name=complex")
        assert config.json()["input"][0]["data_type"] == "TYPE_INVALID"

    served(scenario, echo(tmp_path))


def test_bodies_are_inflated_and_responses_compressed_both_ways() -> None:
    async def scenario(server: RestServer) -> None:
        data = [1.0] * 2000
        body = json.dumps({"inputs": [{**X, "shape": [2000], "data": data}]}).encode()
        for encoding, content in (
            ("gzip", gzip.compress(body)),
            ("deflate", zlib.compress(body)),
            ("deflate", zlib.compress(body)[2:-4]),  # without zlib's header
            ("identity", body),
        ):
            for accepted in ("gzip", "deflate", "identity"):
                answer = await server.client.post(
                    INFER,
                    content=content,
                    headers={"Content-Encoding": encoding, "Accept-Encoding": accepted},
                )
                assert answer.status_code == 200, answer.text
                assert answer.headers.get("content-encoding", "identity") == accepted
                assert answer.json()["outputs"][0]["data"] == [2.5] * 2000
        headers = {"Content-Encoding": "br"}
        refused(await server.client.post(INFER, content=b"x", headers=headers), 400, "'br'")
        headers = {"Content-Encoding": "deflate"}
        for content, text in ((b"\xff\xff", "Cannot inflate"), (zlib.compress(body)[:-9], "short")):
            refused(await server.client.post(INFER, content=content, headers=headers), 400, text)
        small = await server.post(INFER, {"inputs": [X]}, headers={"Accept-Encoding": "gzip"})
        assert "content-encoding" not in small.headers

    served(scenario)


def test_bodies_are_limited_before_and_after_they_are_inflated() -> None:
    async def scenario(server: RestServer) -> None:
        refused(await server.client.post(INFER, content=b" " * 2001), 413, "max_body_bytes")
        for encoding, compressed in (("gzip", gzip.compress), ("deflate", zlib.compress)):
            answer = await server.client.post(
                INFER, content=compressed(b" " * 2001), headers={"Content-Encoding": encoding}
            )
            refused(answer, 413, "inflates to more than 2000 bytes")

    served(scenario, rest={"max_body_bytes": 2000})


def test_large_bodies_are_decoded_on_other_threads(tmp_path: Any) -> None:
    """Large JSON is read in slices and large binary data as a view; the loop goes on."""

    async def scenario(server: RestServer) -> None:
        count = 300_000
        data = [float(index) for index in range(count)]
        body = {"inputs": [{**X, "shape": [count], "data": data}]}
        answer = await server.post(ECHO, body)
        assert answer.json()["outputs"][0]["data"] == data
        raw = np.arange(count, dtype="<f4").tobytes()
        head = {"name": "x", "shape": [count], "datatype": "FP32"}
        request = {
            "parameters": {"binary_data_output": True},
            "inputs": [{**head, "parameters": {"binary_data_size": len(raw)}}],
        }
        _, content = parts(await server.client.post(ECHO, **binary(request, raw)))
        assert content == raw

    served(scenario, echo(tmp_path))


# --- statistics, repository, settings -----------------------------------------------------------


def test_statistics_count_requests_by_version() -> None:
    async def scenario(server: RestServer) -> None:
        for _ in range(2):
            await server.post(INFER, {"inputs": [X]})
        await server.post(INFER, {"inputs": []})
        for path in ("/v2/models/stats", "/v2/models/half_plus_two/versions/1/stats"):
            (found,) = (await server.client.get(path)).json()["model_stats"]
            assert (found["name"], found["version"]) == ("half_plus_two", "1")
            assert (found["inference_count"], found["execution_count"]) == (6, 2)
            counts = {name: each["count"] for name, each in found["inference_stats"].items()}
            assert counts == {
                "success": 2, "fail": 1, "queue": 0, "compute_input": 2, "compute_infer": 2,
                "compute_output": 2, "cache_hit": 0, "cache_miss": 0,
            }  # fmt: skip
            assert found["inference_stats"]["success"]["ns"] > 0
            assert [each["batch_size"] for each in found["batch_stats"]] == [3]
            assert found["last_inference"] > 1_600_000_000_000
        refused(await server.client.get("/v2/models/nope/stats"), 404, "Latest(nope)")
        metrics = (await server.client.get("/monitoring/prometheus/metrics")).text
        assert 'runstep_requests_total{api="infer",status="200"} 2.0' in metrics
        assert 'request_count{model_name="half_plus_two",status="OK"} 2\n' in metrics

    served(scenario)


def test_models_are_unloaded_and_loaded_by_who_may_administer() -> None:
    async def scenario(server: RestServer) -> None:
        models = "/v2/repository/models/"
        answer = await server.post(f"{models}half_plus_two/unload")
        assert (answer.status_code, answer.content) == (200, b"")
        models_ended = functools.partial(
            server.services.models.wait_until,
            lambda: all(
                each.state is ModelState.END
                for each in server.services.models.known_statuses("half_plus_two")
            ),
            60,
        )
        assert await asyncio.to_thread(models_ended)
        refused(await server.post(INFER, {"inputs": [X]}), 404, "Latest(half_plus_two)")
        (entry,) = (await server.post("/v2/repository/index")).json()
        assert (entry["state"], entry["reason"]) == ("UNAVAILABLE", "unloaded")
        refused(await server.post(f"{models}half_plus_two/unload"), 404, "is not served")
        assert (await server.post(f"{models}half_plus_two/load")).status_code == 200
        assert (await server.post(INFER, {"inputs": [X]})).status_code == 200
        refused(await server.post(f"{models}nope/load"), 404, "nope")
        for parameters in ({"config": "{}"}, {"file:1/model.pb": "AA=="}):
            answer = await server.post(f"{models}half_plus_two/load", {"parameters": parameters})
            refused(answer, 501, "a model is loaded from its folder")

    served(scenario, admin={"enabled": True})


def test_without_administration_nothing_can_be_changed() -> None:
    async def scenario(server: RestServer) -> None:
        for path in (
            "/v2/repository/models/half_plus_two/load",
            "/v2/repository/models/half_plus_two/unload",
            "/v2/logging",
            "/v2/trace/setting",
            "/v2/models/half_plus_two/trace/setting",
        ):
            refused(await server.post(path), 403, "admin.enabled is false")
        assert (await server.post(INFER, {"inputs": [X]})).status_code == 200

    served(scenario)


def test_log_settings_are_those_of_the_log() -> None:
    level = logging.getLogger().level

    async def scenario(server: RestServer) -> None:
        answer = await server.post("/v2/logging", {"log_info": True, "log_verbose_level": 0})
        assert answer.json()["log_info"] is True
        assert logging.getLogger().level == logging.INFO
        assert (await server.client.get("/v2/logging")).json() == answer.json()
        await server.post("/v2/logging", {"log_info": False})
        assert logging.getLogger().level == logging.WARNING
        await server.post("/v2/logging", {"log_info": True, "log_verbose_level": 1})
        assert logging.getLogger().level == logging.DEBUG
        wrong = {"log_error": False}
        refused(await server.post("/v2/logging", wrong), 400, "requires log_error")
        refused(await server.post("/v2/logging", {"log_file": "/tmp/x"}), 501, "standard error")
        refused(await server.post("/v2/logging", {"nope": 1}), 400, "Unknown settings: nope")
        refused(await server.post("/v2/logging", {"log_info": 1}), 400, "must be true or false")
        assert logging.getLogger().level == logging.DEBUG

    try:
        served(scenario, admin={"enabled": True})
    finally:
        logging.getLogger().setLevel(level)


def test_traces_are_off() -> None:
    async def scenario(server: RestServer) -> None:
        for path in ("/v2/trace/setting", "/v2/models/half_plus_two/trace/setting"):
            assert (await server.client.get(path)).json()["trace_level"] == ["OFF"]
            answer = await server.post(path, {"trace_level": ["OFF"], "trace_rate": "5"})
            assert answer.json()["trace_level"] == ["OFF"]
            refused(await server.post(path, {"trace_level": ["TIMESTAMPS"]}), 501, "trace_level")
            refused(await server.post(path, {"nope": 1}), 400, "Unknown settings: nope")
        refused(await server.client.get("/v2/models/nope/trace/setting"), 404, "Latest(nope)")

    served(scenario, admin={"enabled": True})


@pytest.mark.parametrize("kind", ["system", "cuda"])
def test_shared_memory_is_off(kind: str) -> None:
    async def scenario(server: RestServer) -> None:
        path = f"/v2/{kind}sharedmemory"
        refused(await server.post(f"{path}/region/r/register"), 503, SHARED_MEMORY)
        for status in (f"{path}/status", f"{path}/region/r/status"):
            assert (await server.client.get(status)).json() == []
        for unregister in (f"{path}/unregister", f"{path}/region/r/unregister"):
            assert (await server.post(unregister)).status_code == 200

    served(scenario)
