"""The OpenAPI document has every call that is answered, and examples that work."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.routing import BaseRoute, Route

from runtime.errors import InvalidArgumentError, NotFoundError
from server.errors import MethodNotAllowedError
from server.framework import framework_app
from server.rest.inference_protocol import paths as protocol_paths
from server.rest.inference_protocol.paths import parse_path
from server.rest.model_paths import parse_model_path
from server.rest.openapi import document_plain_routes
from tests.integration.rest_server import RestServer, with_server
from tests.integration.server_process import ROOT

METHODS = ("GET", "POST")
VERSIONS = ("", "/versions/{version}", "/labels/{label}")
ENDS = (
    *("", "/ready", "/config", "/stats", "/infer", "/trace/setting", "/logging", "/health/live"),
    *("/health/ready", "/index", "/load", "/unload", "/status", "/register", "/unregister"),
)
MODEL = {
    "name": "half_plus_two",
    "base_path": str(ROOT / "examples" / "models" / "half_plus_two"),
    "version_labels": {"stable": 1},
}
NOT_DOCUMENTED = ("/console", "/docs", "/openapi.json")
# What only an administrator may do, and what is refused here.
NEEDS_MORE = re.compile(r"/repository/models/|/register$|/logging$|/setting$")


def document() -> dict[str, Any]:
    """The paths of the OpenAPI document of a server."""
    found: dict[str, Any] = {}

    async def scenario(server: RestServer) -> None:
        found.update((await server.client.get("/openapi.json")).json()["paths"])

    with_server(scenario)
    return found


@pytest.fixture(scope="module")
def documented() -> dict[str, Any]:
    return document()


def calls(paths: dict[str, Any], prefix: str) -> set[tuple[str, str]]:
    """(method, path) of the documented calls below a prefix."""
    return {
        (method.upper(), path)
        for path, item in paths.items()
        for method in item
        if path.startswith(prefix)
    }


def filled(path: str) -> str:
    """A path whose parameters have values."""
    return re.sub(r"\{(\w+)\}", lambda match: "1" if match[1] == "version" else "x", path)


def test_every_call_on_served_models_is_documented(documented: dict[str, Any]) -> None:
    possible = ["/v1/models"] + [
        f"/v1/models/{{name}}{version}{end}"
        for version in VERSIONS
        for end in ("", "/metadata", ":predict", ":classify", ":regress")
    ]
    answered = set()
    for method, path in itertools.product(METHODS, possible):
        try:
            parse_model_path(method, filled(path))
        except InvalidArgumentError:
            continue
        answered.add((method, path))
    assert calls(documented, "/v1/models") == answered


def protocol_candidates() -> Iterator[str]:
    """Paths that the Open Inference Protocol could have."""
    yield "/v2/models/stats"
    for start in (
        *("/v2", "/v2/models/{name}", "/v2/models/{name}/versions/{version}"),
        *("/v2/repository", "/v2/repository/models/{name}"),
        *(f"/v2/{kind}sharedmemory" for kind in ("system", "cuda")),
        *(f"/v2/{kind}sharedmemory/region/{{region}}" for kind in ("system", "cuda")),
    ):
        yield from (f"{start}{end}" for end in ENDS)


def test_every_call_of_the_inference_protocol_is_documented(documented: dict[str, Any]) -> None:
    answered, targets = set(), set()
    for method, path in itertools.product(METHODS, protocol_candidates()):
        try:
            target = parse_path(method, filled(path))
        except (NotFoundError, MethodNotAllowedError):
            continue
        answered.add((method, path))
        targets.add(target.call)
    assert targets == {call for _, _, call in protocol_paths._PATHS}
    assert calls(documented, "/v2") == answered


def flat(routes: Iterable[BaseRoute]) -> Iterator[BaseRoute]:
    """The routes, with those of FastAPI's routers in their place."""
    for route in routes:
        router = getattr(route, "original_router", None)
        yield from [route] if router is None else flat(router.routes)


def test_every_route_is_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[FastAPI] = []

    def keep(app: FastAPI, *arguments: Any) -> None:
        made.append(app)
        document_plain_routes(app, *arguments)

    monkeypatch.setattr(framework_app, "document_plain_routes", keep)
    known = calls(document(), "/")
    routes = {
        (method, route.path_format.rstrip("/"))  # /v1/sessions/ is /v1/sessions
        for route in flat(made[0].routes)
        if isinstance(route, Route) and not route.path_format.startswith(NOT_DOCUMENTED)
        for method in (route.methods or set()) - {"HEAD"}
    }
    assert len(routes) > 15
    assert routes - known == set()


def test_parameters_and_bodies_have_examples(documented: dict[str, Any]) -> None:
    for path, item in documented.items():
        for operation in item.values():
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "path" and parameter["name"] != "session_id":
                    assert "example" in parameter, path
            content = operation.get("requestBody", {}).get("content", {}).get("application/json")
            assert content is None or content.keys() & {"example", "examples"}, path


def test_the_examples_of_calls_without_a_session_are_answered(documented: dict[str, Any]) -> None:
    async def scenario(server: RestServer) -> None:
        while (await server.client.get("/readyz")).status_code != 200:
            pass
        for path, item in documented.items():
            for method, operation in item.items():
                if "{session_id}" in path or (method == "post" and NEEDS_MORE.search(path)):
                    continue
                parameters = operation.get("parameters", ())
                url = path.format(**{each["name"]: each.get("example") for each in parameters})
                content = operation.get("requestBody", {}).get("content", {})
                body = content.get("application/json", {}).get("example")
                answer = await server.client.request(method.upper(), url, json=body)
                assert answer.status_code in (200, 201), (url, answer.text)

    with_server(scenario, models=[MODEL])


def test_the_examples_of_administration_are_answered(documented: dict[str, Any]) -> None:
    async def scenario(server: RestServer) -> None:
        for path in ("/v2/logging", "/v2/trace/setting"):
            content = documented[path]["post"]["requestBody"]["content"]["application/json"]
            answer = await server.post(path, content["example"])
            assert answer.status_code == 200, answer.text

    with_server(scenario, admin={"enabled": True})
