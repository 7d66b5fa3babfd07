"""TensorFlow Serving's REST contract over ASGI, as data; the ids are the conformance list's."""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import contextlib
import gzip
import json
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from starlette.applications import Starlette

from runtime.foundation.errors import InvalidArgumentError
from runtime.sessions.runtime_session import RunRequest
from server.access.access import Access
from server.codec.scalars import NonFinite
from server.lifecycle import Lifecycle
from server.metrics import Metrics
from server.middleware import RequestMiddleware
from server.models.inference_service import InferenceService
from server.models.manager import ModelManager
from server.models.model_config import ModelConfig
from server.models.serving_metrics import ServingMetrics
from server.models.version_policy import AllVersions
from server.rest.models import MODELS_PATH, MalformedRoute, ModelsApi, ModelsOptions
from server.settings import Settings
from server.steps.priorities import Priorities
from server.steps.step_runner import StepRunner
from server.tensorflow_metrics import tensorflow_text
from tests.integration.connections import on_a_port
from tests.integration.rest_server import Ways
from tests.unit.server.models.fakes import FakeLoader, HandPool, make_versions

pytestmark = pytest.mark.usefixtures("both_ways")


class Server:
    """half_plus_two in versions 122 and 123 (label `stable`: 123) behind the API."""

    def __init__(self, base: Path, max_answer_bytes: int = 1 << 30, **options: Any) -> None:
        make_versions(base, 122, 123)
        pool = HandPool()
        self.loader = FakeLoader()
        configs = [ModelConfig("m", str(base), AllVersions(), {"stable": 123})]
        self.manager = ModelManager(configs, self.loader, pool)
        self.manager.poll()
        pool.run_all()
        self.metrics = ServingMetrics(self.manager.is_configured)
        self.step_metrics = Metrics()
        runner = StepRunner(Priorities(Settings()), self.step_metrics, max_answer_bytes)
        api = ModelsApi(
            InferenceService(self.manager, runner, self.metrics), ModelsOptions(**options)
        )
        self.app = RequestMiddleware(
            Starlette(routes=[MalformedRoute(api)]),
            shortcuts=((MODELS_PATH, api),),
            answers_now={"predict": ("predict", api.predict_now)} if not options else None,
            access=Access(Settings(), {}.get),
            lifecycle=Lifecycle(),
            metrics=self.step_metrics,
            max_body_bytes=1 << 30,
            access_log=False,
        )

    @property
    def requests(self) -> list[RunRequest]:
        """The steps that version 123 was asked for."""
        requests: list[RunRequest] = self.loader.bundles[123].session.requests
        return requests

    @contextlib.asynccontextmanager
    async def client(self) -> AsyncIterator[httpx.AsyncClient]:
        if Ways.on_a_port:
            async with on_a_port(self.app) as url, httpx.AsyncClient(base_url=url) as client:
                yield client
            return
        transport = httpx.ASGITransport(app=self.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
            yield client

    def call(
        self, method: str, path: str, body: str | bytes = b"", **kwargs: Any
    ) -> httpx.Response:
        async def go() -> httpx.Response:
            async with self.client() as client:
                return await client.request(method, path, content=body, **kwargs)

        return asyncio.run(go())


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path)


@pytest.fixture
def strict_server(tmp_path: Path) -> Server:
    return Server(tmp_path, strict=True)


MALFORMED = [
    ("1", "GET", "/v1/foo"),
    ("2", "POST", "/v1/foo"),
    ("4", "GET", "/v1/models/debug/model_name"),
    ("5", "POST", "/v1/models"),
    ("6", "GET", "/v1/models/foo:predict"),
    ("7", "GET", "/v1/models/foo/version/50:predict"),
    ("8", "POST", "/v1/models/foo/versions/HELLO:regress"),
    ("10", "POST", "/v1/models/foo/metadata"),
    ("11", "POST", "/v1/models/foo/label/some_label:regress"),
    ("12", "POST", "/v1/models/foo/versions/50/labels/some_label:regress"),
    ("put", "PUT", "/v1/models/foo"),
    ("delete", "DELETE", "/V1/models/foo"),
    ("case", "POST", "/v1/models/foo:PREDICT"),
]


@pytest.mark.parametrize(
    ("method", "path"), [c[1:] for c in MALFORMED], ids=[c[0] for c in MALFORMED]
)
def test_malformed_requests(server: Server, method: str, path: str) -> None:
    response = server.call(method, path)
    assert response.status_code == 400
    assert response.json()["error"] == f"Malformed request: {method} {path}"
    assert response.json()["code"] == "INVALID_ARGUMENT"


def test_paths_outside_v1_are_not_ours(server: Server) -> None:
    assert server.call("GET", "/v2/health").status_code == 404


PREDICT = "/v1/models/m:predict"
ROWS = '{"instances":[1]}'
LONG = "a" * 80  # what an error has of a longer name
ERRORS = [
    (
        "9",
        "/v1/models/foo/versions/18446744073709551615:regress",
        "",
        400,
        "Failed to convert version: 18446744073709551615 to numeric.",
    ),
    ("13", "/v1/models/foo:predict", ROWS, 404, "Servable not found for request: Latest(foo)"),
    (
        "14",
        "/v1/models/foo/versions/50:predict",
        ROWS,
        404,
        "Servable not found for request: Specific(foo, 50)",
    ),
    (
        "bad-body-first",
        "/v1/models/foo:predict",
        "{",
        400,
        "JSON Parse error: Missing a name for object member. at offset: 1",
    ),
    ("15", PREDICT, "", 400, "JSON Parse error: The document is empty"),
    ("16", PREDICT, "instances = [1, 2]", 400, "JSON Parse error: Invalid value. at offset: 0"),
    (
        "18",
        "/v1/models/m/labels/none:predict",
        ROWS,
        400,
        "Unrecognized servable version label: none",
    ),
    (
        "signature",
        PREDICT,
        '{"signature_name":"x","instances":[1]}',
        400,
        'Serving signature name: "x" not found in signature def',
    ),
    (
        "priority",
        PREDICT,
        '{"instances":[1],"priority":"urgent"}',
        400,
        "Unknown priority 'urgent'; known are normal, low",
    ),
    *(
        (
            f"{key}-{length}",
            PREDICT,
            f'{{"{key}":"{"a" * length}","instances":[1]}}',
            400,
            error,
        )
        for length in (60_000, 300_000)
        for key, error in (
            ("signature_name", f'Serving signature name: "{LONG}" not found in signature def'),
            ("priority", f"Unknown priority '{LONG[1:]}; known are normal, low"),
        )
    ),
    *(
        (
            f"classify-signature_name-{length}",
            "/v1/models/m:classify",
            f'{{"signature_name":"{"a" * length}","examples":[{{"x":1.0}}]}}',
            400,
            f"No signature was found with the name: {LONG}",
        )
        for length in (60_000, 300_000)
    ),
    (
        "priority-type",
        PREDICT,
        '{"instances":[1],"priority":3}',
        400,
        "priority must be a string, got 3",
    ),
    (
        "classify-signature",
        "/v1/models/m:classify",
        '{"examples":[{"x":1.0}],"signature_name":"none"}',
        400,
        "No signature was found with the name: none",
    ),
    (
        "classify-kind",
        "/v1/models/m:classify",
        '{"examples":[{"x":1.0}]}',
        400,
        "No classification inputs found in SignatureDef: serving_default "
        "with inputs {x} and outputs {y}",
    ),
    (
        "regress-kind",
        "/v1/models/m:regress",
        '{"examples":[{"x":1.0}],"signature_name":"classify_x_to_y"}',
        400,
        "No regression outputs found in SignatureDef: classify_x_to_y "
        "with inputs {inputs} and outputs {scores}",
    ),
]


@pytest.mark.parametrize(
    ("path", "body", "status", "error"), [c[1:] for c in ERRORS], ids=[c[0] for c in ERRORS]
)
def test_errors(server: Server, path: str, body: str, status: int, error: str) -> None:
    response = server.call("POST", path, body)
    assert (response.status_code, response.json()["error"]) == (status, error)
    assert response.headers["content-type"] == "application/json"


ANSWERS = [
    (
        "20",
        "m:predict",
        '{"instances":[[1.0,2.0],[3.0,4.0]]}',
        '{"predictions":[[2.5,3.0],[3.5,4.0]]}',
    ),
    ("21", "m/versions/123:predict", '{"instances":[1.0,2.0]}', '{"predictions":[2.5,3.0]}'),
    ("22", "m/labels/stable:predict", '{"instances":[1.0,2.0]}', '{"predictions":[2.5,3.0]}'),
    (
        "23",
        "m:predict",
        '{"signature_name":"serving_default","instances":[3.0,4.0]}',
        '{"predictions":[3.5,4.0]}',
    ),
    (
        "24",
        "m:predict",
        '{"signature_name":"serving_default","inputs":[3.0,4.0]}',
        '{"outputs":[3.5,4.0]}',
    ),
    (
        "25",
        "m:regress",
        '{"signature_name":"regress_x_to_y","examples":[{"x":80.0}]}',
        '{"results":[42.0]}',
    ),
    (
        "26",
        "m:classify",
        '{"signature_name":"classify_x_to_y","examples":[{"x":20.0}]}',
        '{"results":[[["",12.0]]]}',
    ),
    (
        "27",
        "m/labels/stable:classify",
        '{"signature_name":"classify_x_to_y","examples":[{"x":10.0}]}',
        '{"results":[[["",7.0]]]}',
    ),
    ("nan", "m:predict", '{"instances":[NaN,Infinity]}', '{"predictions":[NaN,Infinity]}'),
]


@pytest.mark.parametrize(
    ("path", "body", "answer"), [c[1:] for c in ANSWERS], ids=[c[0] for c in ANSWERS]
)
@pytest.mark.parametrize("prefix", ["/v1/models/", "/V1/MODELS/"])
def test_answers(server: Server, path: str, body: str, answer: str, prefix: str) -> None:
    response = server.call("POST", prefix + path, body)
    assert (response.status_code, response.text) == (200, answer)
    assert response.headers.get_list("content-type") == ["application/json"]  # 30


def test_strict_answers_are_laid_out_as_there(strict_server: Server) -> None:
    response = strict_server.call("POST", PREDICT, '{"instances":[1.0,2.0]}')
    assert response.text == '{\n    "predictions": [2.5, 3.0\n    ]\n}'
    response = strict_server.call("POST", PREDICT, '{"instances":"\\""}')
    assert response.status_code == 400
    assert response.text == (  # 79
        '{\n    "error": "JSON Value: {\\n    \\"instances\\": \\"\\\\\\"\\"\\n} '
        "Expecting 'instances' to be an list/array\"\n}"
    )


STATUS = {
    "version": "123",
    "state": "AVAILABLE",
    "status": {"error_code": "OK", "error_message": ""},
}


def test_status(server: Server, strict_server: Server) -> None:  # 28
    older = STATUS | {"version": "122"}
    both = {"model_version_status": [STATUS, older]}
    assert server.call("GET", "/v1/models/m").json() == both
    assert server.call("GET", "/v1/models/m/labels/stable").json() == both
    one = server.call("GET", "/v1/models/m/versions/123")
    assert one.json() == {"model_version_status": [STATUS]}
    strict = strict_server.call("GET", "/v1/models/m/versions/123").text
    assert strict == json.dumps({"model_version_status": [STATUS]}, indent=1) + "\n"
    missing = server.call("GET", "/v1/models/m/versions/9")
    assert missing.status_code == 404
    assert missing.json()["error"] == "Could not find version 9 of model m"


def test_metadata(server: Server, strict_server: Server) -> None:  # 29
    response = server.call("GET", "/v1/models/m/metadata")
    value = response.json()
    assert value["model_spec"] == {"name": "m", "signature_name": "", "version": "123"}
    signatures = value["metadata"]["signature_def"]["signature_def"]
    assert list(signatures) == ["classify_x_to_y", "regress_x_to_y", "serving_default"]
    assert signatures["serving_default"]["inputs"] == {
        "x": {
            "dtype": "DT_FLOAT",
            "tensor_shape": {"dim": [{"size": "-1", "name": ""}], "unknown_rank": False},
            "name": "in_x:0",
        }
    }
    assert strict_server.call("GET", "/v1/models/m/metadata").json() == value
    assert server.call("GET", "/v1/models/none/metadata").status_code == 404


def test_list(server: Server, strict_server: Server) -> None:  # 3
    (model,) = server.call("GET", "/v1/models").json()["models"]
    assert (model["name"], model["ready"]) == ("m", True)
    assert [(v["version"], v["labels"]) for v in model["versions"]] == [
        ("123", ["stable"]),
        ("122", []),
    ]
    assert "serving_default" in model["versions"][0]["signatures"]
    assert model["versions"][0]["clusters"] == []
    assert "engine" in model["versions"][0]  # null until a step is worth one
    response = strict_server.call("GET", "/v1/models")
    assert response.status_code == 400
    assert response.json() == {"error": "Missing model name in request."}


def test_names_are_percent_decoded(server: Server) -> None:
    response = server.call("GET", "/v1/models/a%21%2F%3Ab")
    assert response.json()["error"] == "Could not find any versions of model a!/:b"


def test_cors(tmp_path: Path) -> None:
    server = Server(tmp_path, cors=True)
    origin = {"Origin": "https://page"}
    preflight = server.call("OPTIONS", PREDICT, headers=origin)
    assert (preflight.status_code, preflight.content) == (200, b"")
    without_origin = server.call("OPTIONS", PREDICT)
    assert (without_origin.status_code, without_origin.content) == (400, b"")
    for response in (preflight, server.call("POST", PREDICT, ROWS), server.call("POST", PREDICT)):
        assert response.headers["access-control-allow-origin"] == "*"
        assert response.headers["access-control-allow-methods"] == "POST, GET"
    assert "access-control-allow-origin" not in Server(tmp_path).call("POST", PREDICT, ROWS).headers


def test_gzipped_bodies(tmp_path: Path) -> None:
    server = Server(tmp_path, max_body_bytes=1000)
    headers = {"Content-Encoding": "gzip"}
    body = gzip.compress(b'{"instances":') + gzip.compress(b"[1.0]}")
    assert server.call("POST", PREDICT, body, headers=headers).json() == {"predictions": [2.5]}
    bomb = server.call("POST", PREDICT, gzip.compress(b" " * 1001), headers=headers)
    assert bomb.status_code == 413
    for broken in (body[:-4], b"junk"):
        response = server.call("POST", PREDICT, broken, headers=headers)
        assert response.status_code == 400
        assert "Cannot inflate the gzipped body" in response.json()["error"]


def test_priority_chooses_the_pool(server: Server) -> None:
    server.loader.bundles[123].session.is_slow = True  # a short step uses no pool
    server.call("POST", PREDICT, ROWS)
    server.call("POST", PREDICT, ROWS, headers={"X-Priority": "low"})
    server.call(
        "POST", PREDICT, '{"instances":[1],"priority":"normal"}', headers={"X-Priority": "low"}
    )
    session = server.loader.bundles[123].session
    pools = [request.pool.name for request in session.requests if request.pool]
    assert pools == ["online", "background", "online"]
    # A step of low priority never runs on the event loop's thread.
    assert [request.pool.name for request in session.if_short] == ["online", "online"]


def test_timeouts(server: Server) -> None:
    response = server.call("POST", PREDICT, ROWS, headers={"X-Timeout-Ms": "soon"})
    assert response.json()["error"] == "X-Timeout-Ms must be a positive integer, got 'soon'"
    assert server.call("POST", PREDICT, ROWS, headers={"X-Timeout-Ms": "5000"}).status_code == 200


def test_a_policy_for_what_is_not_finite(tmp_path: Path) -> None:
    server = Server(tmp_path, non_finite=NonFinite.NULL)
    assert server.call("POST", PREDICT, '{"instances":[NaN]}').text == '{"predictions":[null]}'


def test_large_bodies_go_through_another_thread(server: Server) -> None:
    values = np.arange(100_000, dtype=np.float32)
    response = server.call("POST", PREDICT, json.dumps({"instances": values.tolist()}))
    assert response.json()["predictions"] == (values / 2 + 2).tolist()


# What TensorFlow Serving counts of a request: its model, and the status of its answer.
COUNTED = [
    ("POST", PREDICT, ROWS, "m", "OK"),
    ("POST", PREDICT, "{", "m", "INVALID_ARGUMENT"),
    ("POST", "/v1/models/m:regress", ANSWERS[5][2], "m", "OK"),
    ("POST", "/v1/models/made%20up:predict", ROWS, "made up", "NOT_FOUND"),
    ("POST", "/v1/models/made_up:regress", ANSWERS[5][2], "made_up", "NOT_FOUND"),
    ("GET", "/v1/models/m", "", "m", "OK"),
    ("GET", "/v1/models/m/versions/7", "", "m", "NOT_FOUND"),
    ("GET", "/v1/models/m/metadata", "", "m", "OK"),
    ("POST", "/v1/models/m/versions/18446744073709551615:regress", ROWS, "m", "INVALID_ARGUMENT"),
    ("POST", "/v1/models/m:PREDICT", ROWS, "m", "INVALID_ARGUMENT"),
    ("POST", "/v1/models/m", ROWS, "", "INVALID_ARGUMENT"),
    ("PUT", "/v1/foo", "", "", "INVALID_ARGUMENT"),
    ("OPTIONS", "/v1/models/m", "", "", "FAILED_PRECONDITION"),
]


def page(server: Server) -> list[str]:
    return tensorflow_text(server.metrics.collect()).splitlines()


def test_requests_are_counted_as_there(server: Server) -> None:
    expected: collections.Counter[tuple[str, str]] = collections.Counter()
    for method, path, body, model, status in COUNTED:
        server.call(method, path, body)
        expected[model, status] += 1
    assert sorted(line for line in page(server) if "serving:request_count{" in line) == sorted(
        f':tensorflow:serving:request_count{{model_name="{model}",status="{status}"}} {count}'
        for (model, status), count in expected.items()
    )


def test_latencies_and_examples_have_the_labels_and_values_there(server: Server) -> None:
    for method, path, body, _, _ in COUNTED:
        server.call(method, path, body)
    lines = page(server)
    assert [line for line in lines if "_latency_count" in line] == [
        f":tensorflow:serving:{metric}_latency_count{{{labels}}} {count}"
        for metric, labels, count in (
            ("request", 'model_name="m",API="predict",entrypoint="REST"', 1),
            ("request", 'model_name="m",API="regress",entrypoint="REST"', 1),
            ("request", 'model_name="m",API="",entrypoint="REST"', 2),
            ("runtime", 'model_name="m",API="Predict",runtime="TF1"', 1),
            ("runtime", 'model_name="m",API="Regress",runtime="TF1"', 1),
        )
    ]
    for line in (
        "# TYPE :tensorflow:serving:request_count counter",
        "# TYPE :tensorflow:serving:request_latency histogram",
        "# TYPE :tensorflow:serving:request_example_count_total counter",
        ':tensorflow:serving:request_example_count_total{model="m"} 1',
        ':tensorflow:serving:request_example_counts_bucket{model="m",le="1"} 1',
    ):
        assert line in lines, line


class Blocking:
    """A session function that waits on another thread until the test lets it go."""

    def __init__(self, server: Server) -> None:
        self.started = threading.Event()
        self.released = threading.Event()
        self.session = server.loader.bundles[123].session
        self.session.is_slow = True
        self._answer = self.session.run_async
        self.session.run_async = self.run_async

    def run_async(self, request: RunRequest) -> Any:
        pool = request.pool
        assert pool is not None
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()

        def work() -> None:
            self.started.set()
            self.released.wait()
            future.set_result(self._answer(request).result())

        pool.schedule(work)
        return future


def run_with_blocked_step(
    server: Server, act: Callable[[httpx.AsyncClient, Blocking], Coroutine[Any, Any, None]]
) -> None:
    blocking = Blocking(server)

    async def go() -> None:
        async with server.client() as client:
            await act(client, blocking)

    try:
        asyncio.run(go())
    finally:
        blocking.released.set()


@pytest.mark.parametrize(
    ("timeout_ms", "headers"), [(0, {"X-Timeout-Ms": "20"}), (20, {})], ids=["header", "option"]
)
def test_the_answer_leaves_at_the_deadline(
    tmp_path: Path, timeout_ms: int, headers: dict[str, str]
) -> None:
    server = Server(tmp_path, timeout_ms=timeout_ms)

    async def act(client: httpx.AsyncClient, blocking: Blocking) -> None:
        response = await client.post(PREDICT, content=ROWS, headers=headers)
        assert response.status_code == 504
        assert response.json()["code"] == "DEADLINE_EXCEEDED"
        assert not server.requests  # the step itself goes on behind the answer

    run_with_blocked_step(server, act)


def test_a_version_in_use_is_counted(server: Server) -> None:
    async def act(client: httpx.AsyncClient, blocking: Blocking) -> None:
        task = asyncio.create_task(client.post(PREDICT, content=ROWS))
        await asyncio.to_thread(blocking.started.wait)
        assert server.manager.find("m").in_flight == 1
        blocking.released.set()
        assert (await task).json() == {"predictions": [2.5]}
        assert server.manager.find("m").in_flight == 0

    run_with_blocked_step(server, act)


def test_a_client_that_goes_away_cancels_its_step(server: Server) -> None:
    seen: list[RunRequest] = []

    async def act(client: httpx.AsyncClient, blocking: Blocking) -> None:
        original = blocking.session.run_async

        def remember(request: RunRequest) -> Any:
            seen.append(request)
            return original(request)

        blocking.session.run_async = remember
        incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        incoming.put_nowait({"type": "http.request", "body": ROWS.encode(), "more_body": False})
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http", "method": "POST", "path": PREDICT, "raw_path": PREDICT.encode(),
            "headers": [], "query_string": b"", "root_path": "",
        }  # fmt: skip
        task = asyncio.create_task(server.app(scope, incoming.get, send))
        await asyncio.to_thread(blocking.started.wait)
        incoming.put_nowait({"type": "http.disconnect"})
        await task
        assert sent[0]["status"] == 499
        with pytest.raises(Exception, match="The client went away"):
            assert seen[0].cancellation is not None
            seen[0].cancellation.check()

    run_with_blocked_step(server, act)


@pytest.mark.parametrize("parts", [[], [b'{"inst', b'ances"']])
def test_a_client_that_goes_away_before_the_body_ends(server: Server, parts: list[bytes]) -> None:
    async def go() -> None:
        incoming = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
        incoming.append({"type": "http.disconnect"})
        messages = iter(incoming)
        sent: list[Any] = []

        async def receive() -> Any:
            return next(messages)

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http", "method": "POST", "path": PREDICT, "raw_path": PREDICT.encode(),
            "headers": [], "query_string": b"", "root_path": "",
        }  # fmt: skip
        await server.app(scope, receive, send)
        assert sent[0]["status"] == 499

    asyncio.run(go())
    assert not server.requests


def test_an_unexpected_error_is_internal(server: Server) -> None:
    def fail(request: RunRequest) -> Any:
        raise ZeroDivisionError

    server.loader.bundles[123].session.function = fail
    response = server.call("POST", PREDICT, ROWS)
    assert response.status_code == 500
    assert response.json()["code"] == "INTERNAL"


def test_an_error_of_the_step(server: Server) -> None:
    def refuse(request: RunRequest) -> Any:
        raise InvalidArgumentError("Incompatible shapes: [2] vs. [3]", "add")

    server.loader.bundles[123].session.function = refuse
    response = server.call("POST", PREDICT, ROWS)
    assert response.status_code == 400
    assert response.json()["error"].endswith("[[{{node add}}]]")
