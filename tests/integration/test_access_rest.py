"""Who may do what, over REST: a whole server, with and without authentication."""

from __future__ import annotations

import asyncio
import pathlib
import re
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from server.access.access import Access
from server.access.caller import masked
from server.access.reloading import reload_once
from tests.integration.access import OWNERS, bearer, write_keys
from tests.integration.rest_server import (
    HALF_PLUS_TWO,
    RUN_Y,
    RestServer,
    check_error,
    encoded,
    endless_graph,
    with_server,
)
from tests.integration.server_process import ROOT

MODELS = [{"name": "m", "base_path": str(ROOT / "examples" / "models" / "half_plus_two")}]
PREDICT = "/v1/models/m:predict"
INSTANCES = {"instances": [1.0, 2.0, 5.0]}
pytestmark = pytest.mark.usefixtures("both_ways")
Scenario = Callable[[RestServer], Coroutine[Any, Any, None]]


@pytest.fixture
def keys(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "keys.yaml"


def with_keys(
    scenario: Scenario,
    keys: pathlib.Path,
    owners: dict[str, dict[str, Any]] | None = None,
    **settings: Any,
) -> None:
    access = {"keys_file": write_keys(keys, owners)} | settings.pop("access", {})
    with_server(scenario, access=access, **settings)


async def create(server: RestServer, owner: str, body: Any = HALF_PLUS_TWO) -> str:
    """Open a session of an owner; its path."""
    answer = await server.post("/v1/sessions", body, headers=bearer(owner))
    assert answer.status_code == 201, answer.text
    return str(answer.headers["location"])


async def loaded(server: RestServer) -> None:
    await asyncio.to_thread(server.services.models.wait_until_settled, 30)


# --- without authentication ---------------------------------------------------------------------


def test_without_authentication_an_id_is_the_capability() -> None:
    async def scenario(server: RestServer) -> None:
        session = await server.create()
        session_id = session.rpartition("/")[2]
        (listed,) = (await server.client.get("/v1/sessions")).json()["sessions"]
        assert listed["session"] == masked(session_id) != session_id
        assert session_id not in (await server.client.get("/v1/sessions")).text
        assert (await server.client.get(session)).json()["session"] == session_id
        guess = await server.post(f"/v1/sessions/{listed['session']}:run", RUN_Y)
        check_error(guess, 404, "NOT_FOUND", "is not found")
        assert (await server.post(f"{session}:run", RUN_Y)).status_code == 200

    with_server(scenario)


def test_pools_of_a_session_do_not_show_its_id() -> None:
    async def scenario(server: RestServer) -> None:
        own = {"config": {"use_per_session_threads": True, "inter_op_parallelism_threads": 1}}
        session = await server.create(HALF_PLUS_TWO | own)
        session_id = session.rpartition("/")[2]
        for path in ("/v1/threadpools", "/v1/sessions"):
            text = (await server.client.get(path)).text
            assert f"{masked(session_id)}/Compute0" in text and session_id not in text
        assert f"{session_id}/Compute0" in (await server.client.get(session)).text

    with_server(scenario)


def test_a_web_page_of_another_host_opens_no_session() -> None:
    async def scenario(server: RestServer) -> None:
        page = {"origin": "http://evil.example", "content-type": "text/plain"}
        for method, path in (
            ("POST", "/v1/sessions"), ("POST", PREDICT), ("DELETE", "/v1/sessions/x"),
        ):  # fmt: skip
            answer = await server.client.request(method, path, content="{}", headers=page)
            check_error(answer, 403, "PERMISSION_DENIED", "A web page of 'http://evil.example'")
        own = page | {"origin": f"http://{server.client.base_url.host}"}
        assert (await server.client.post("/v1/sessions", headers=own)).status_code == 201

    with_server(scenario)


def test_a_local_server_is_not_reached_under_another_name() -> None:
    async def scenario(server: RestServer) -> None:
        for path in ("/healthz", "/v1/models", "/v1/sessions"):
            answer = await server.client.get(path, headers={"host": "rebound.example:8501"})
            check_error(answer, 403, "PERMISSION_DENIED", "has no host 'rebound.example'")
            assert (await server.client.get(path)).status_code == 200
        answer = await server.post("/v1/sessions", headers={"host": "named.example"})
        assert answer.status_code == 201

    with_server(scenario, rest={"host": "127.0.0.1"}, access={"hosts": ["named.example"]})


def test_with_cors_every_page_calls_the_models_only() -> None:
    async def scenario(server: RestServer) -> None:
        await loaded(server)
        page = {"origin": "http://page.example"}
        answer = await server.post(PREDICT, INSTANCES, headers=page)
        assert answer.json() == {"predictions": [2.5, 3.0, 4.5]}
        assert answer.headers["access-control-allow-origin"] == "*"
        assert (await server.client.options(PREDICT, headers=page)).status_code == 200
        assert (await server.post("/v1/sessions", headers=page)).status_code == 403

    with_server(scenario, rest={"cors": True}, models=MODELS)


def test_nobody_brings_graphs_but_sessions_on_models_work() -> None:
    async def scenario(server: RestServer) -> None:
        await loaded(server)
        session = await server.create({"model": "m"})
        empty = await server.create({})
        graph = HALF_PLUS_TWO["graph_def"]
        for path, body in (
            ("/v1/sessions", HALF_PLUS_TWO),
            ("/v1/sessions", {"meta_graph_def": ""}),
            (f"{session}:extend", {"graph_def": graph}),
            (f"{empty}:extend", {"graph_def": graph}),
        ):
            answer = await server.post(path, body)
            check_error(answer, 403, "PERMISSION_DENIED", "graphs of its own (sessions.graphs)")
        protobuf = {"content-type": "application/x-protobuf"}
        for path in ("/v1/sessions", f"{session}:extend"):
            answer = await server.client.post(path, content=b"", headers=protobuf)
            assert answer.status_code == 403
        body = {"feeds": {"serving_default_x:0": [1.0]}, "fetches": ["StatefulPartitionedCall_2:0"]}
        assert (await server.post(f"{session}:run", body)).status_code == 200

    with_server(scenario, sessions={"graphs": "none"}, models=MODELS)


# --- keys and roles -----------------------------------------------------------------------------


def test_without_a_key_only_health_and_docs_answer(keys: pathlib.Path) -> None:
    async def scenario(server: RestServer) -> None:
        await loaded(server)
        for path in OPEN:
            assert (await server.client.get(path)).status_code == 200, path
        for method, path in await all_calls(server):
            answer = await server.client.request(method, path)
            assert answer.status_code == 401, (method, path)
            if path.startswith("/v2"):
                assert list(answer.json()) == ["error"]
                assert "requires an API key" in answer.json()["error"]
            else:
                check_error(answer, 401, "UNAUTHENTICATED", "requires an API key")
            assert answer.headers["www-authenticate"] == "Bearer"
        wrong = await server.client.get("/v1/models", headers={"x-api-key": "no such key"})
        check_error(wrong, 401, "UNAUTHENTICATED", "The API key is unknown")
        assert "no such key" not in wrong.text

    with_keys(scenario, keys, models=MODELS)


OPEN = (
    "/healthz", "/readyz", "/v2/health/live", "/v2/health/ready", "/docs", "/openapi.json",
)  # fmt: skip


async def all_calls(server: RestServer, session_id: str = "x") -> list[tuple[str, str]]:
    """Every documented call but the open ones."""
    paths = (await server.client.get("/openapi.json")).json()["paths"]
    return [
        (method.upper(), re.sub(r"{\w+}", "1", path.replace("{session_id}", session_id)))
        for path, item in paths.items()
        for method in item
        if path not in OPEN
    ]


def test_every_call_on_another_owner_s_session_is_not_found(keys: pathlib.Path) -> None:
    async def scenario(server: RestServer) -> None:
        session_id = (await create(server, "alice")).rpartition("/")[2]
        every = await all_calls(server, session_id)
        calls = [each for each in every if session_id in each[1]]
        assert len(calls) >= 14 and len(every) >= 25
        for method, path in calls:
            answer = await server.client.request(method, path, headers=bearer("bob"))
            check_error(answer, 404, "NOT_FOUND", f"Session {session_id} is not found.")
            answer = await server.client.request(method, path, headers=bearer("reader"))
            assert answer.status_code == 403
        described = await server.client.get(f"/v1/sessions/{session_id}", headers=bearer("alice"))
        assert described.json()["steps"] == 0

    with_keys(scenario, keys)


def test_listings_show_one_s_own(keys: pathlib.Path) -> None:
    async def scenario(server: RestServer) -> None:
        ids = {name: (await create(server, name)).rpartition("/")[2] for name in ("alice", "bob")}

        async def listed(owner: str) -> list[str]:
            answer = await server.client.get("/v1/sessions", headers=bearer(owner))
            return [each["session"] for each in answer.json()["sessions"]]

        assert await listed("alice") == [ids["alice"]]
        assert await listed("bob") == [ids["bob"]]
        assert await listed("root") == [masked(ids["alice"]), masked(ids["bob"])]
        session = f"/v1/sessions/{ids['alice']}"
        assert (await server.client.get(session, headers=bearer("root"))).status_code == 200

    with_keys(scenario, keys)


@pytest.mark.parametrize(
    ("owner", "statuses"), [("alice", (200, 201)), ("bob", (403, 201)), ("root", (200, 201)),
                            ("reader", (403, 403))],
)  # fmt: skip
def test_roles(keys: pathlib.Path, owner: str, statuses: tuple[int, int]) -> None:
    async def scenario(server: RestServer) -> None:
        await loaded(server)
        predicted = await server.post(PREDICT, INSTANCES, headers=bearer(owner))
        opened = await server.post("/v1/sessions", HALF_PLUS_TWO, headers=bearer(owner))
        assert (predicted.status_code, opened.status_code) == statuses
        for path in ("/monitoring/prometheus/metrics", "/v1/models", "/v1/threadpools"):
            assert (await server.client.get(path, headers=bearer(owner))).status_code == 200

    with_keys(scenario, keys, models=MODELS)


def test_those_without_a_key_may_have_roles(keys: pathlib.Path) -> None:
    async def scenario(server: RestServer) -> None:
        await loaded(server)
        assert (await server.post(PREDICT, INSTANCES)).status_code == 200
        assert (await server.post("/v1/sessions", {})).status_code == 403
        wrong = await server.post(PREDICT, INSTANCES, headers={"x-api-key": "wrong"})
        assert wrong.status_code == 401

    with_keys(scenario, keys, models=MODELS, access={"anonymous_roles": ["predict"]})


def test_keys_are_read_again(keys: pathlib.Path) -> None:
    async def scenario(server: RestServer) -> None:
        await create(server, "alice")
        access: Access = server.services.access
        write_keys(keys, {"carol": {"roles": ["sessions"]}})
        await reload_once(access)
        await create(server, "carol")
        check_error(
            await server.post("/v1/sessions", headers=bearer("alice")),
            401, "UNAUTHENTICATED", "unknown",
        )  # fmt: skip
        keys.write_text("not: [right")
        await reload_once(access)
        await create(server, "carol")

    with_keys(scenario, keys)


# --- limits -------------------------------------------------------------------------------------


def limited(**limits: Any) -> dict[str, dict[str, Any]]:
    """The owners of these tests; alice has limits."""
    return OWNERS | {"alice": OWNERS["alice"] | {"limits": limits}}


def test_requests_per_second(keys: pathlib.Path) -> None:
    async def scenario(server: RestServer) -> None:
        await loaded(server)
        alice = bearer("alice")
        assert (await server.post(PREDICT, INSTANCES, headers=alice)).status_code == 200
        answer = await server.post(PREDICT, INSTANCES, headers=alice)
        check_error(answer, 429, "RESOURCE_EXHAUSTED", "requests_per_second is 0.001")
        assert 900 < int(answer.headers["retry-after"]) <= 1000
        assert (await server.client.get("/healthz", headers=alice)).status_code == 200
        assert (await server.post("/v1/sessions", headers=bearer("bob"))).status_code == 201

    with_keys(scenario, keys, limited(requests_per_second=0.001), models=MODELS)


@pytest.mark.parametrize("is_chunked", [False, True])
def test_bytes_per_second(keys: pathlib.Path, is_chunked: bool) -> None:
    async def chunks() -> Any:
        for _ in range(4):
            yield b"x" * 1000

    async def scenario(server: RestServer) -> None:
        content: Any = chunks() if is_chunked else b"x" * 4000
        alice = bearer("alice")
        first = await server.client.post("/v1/sessions", content=content, headers=alice)
        assert first.status_code == 400  # its body was read
        answer = await server.client.get("/v1/sessions", headers=alice)
        check_error(answer, 429, "RESOURCE_EXHAUSTED", "bytes_per_second is 10")
        assert 380 < int(answer.headers["retry-after"]) < 440  # the answer's bytes count too

    with_keys(scenario, keys, limited(bytes_per_second=10))


def test_bytes_of_answers_count(keys: pathlib.Path) -> None:
    async def scenario(server: RestServer) -> None:
        alice = bearer("alice")
        metrics = "/monitoring/prometheus/metrics"
        assert (await server.client.get(metrics, headers=alice)).status_code == 200
        assert (await server.client.get(metrics, headers=alice)).status_code == 429

    with_keys(scenario, keys, limited(bytes_per_second=100))


def test_open_sessions(keys: pathlib.Path) -> None:
    async def scenario(server: RestServer) -> None:
        session = await create(server, "alice")
        answer = await server.post("/v1/sessions", headers=bearer("alice"))
        check_error(answer, 429, "RESOURCE_EXHAUSTED", "alice exceeds its limit: sessions is 1")
        assert int(answer.headers["retry-after"]) > 1
        await create(server, "bob")
        await server.client.delete(session, headers=bearer("alice"))
        await create(server, "alice")

    with_keys(scenario, keys, limited(sessions=1))


def test_concurrent_steps(keys: pathlib.Path) -> None:
    async def scenario(server: RestServer) -> None:
        await loaded(server)
        alice = bearer("alice")
        session = await create(server, "alice", {"graph_def": encoded(endless_graph())})
        loop = {"feeds": {"start": 1.0}, "fetches": ["loop"]}
        running = asyncio.create_task(server.post(f"{session}:run", loop, headers=alice))
        while (await server.client.get(session, headers=alice)).json()["state"] != "RUNNING":
            await asyncio.sleep(0)
        for path, body in ((PREDICT, INSTANCES), (f"{session}:run", loop)):
            answer = await server.post(path, body, headers=alice)
            check_error(answer, 429, "RESOURCE_EXHAUSTED", "concurrent_steps is 1")
            assert answer.headers["retry-after"] == "1"
        assert (await server.post(PREDICT, INSTANCES, headers=bearer("root"))).status_code == 200
        await server.client.delete(session, headers=alice)
        assert (await running).status_code == 499
        assert (await server.post(PREDICT, INSTANCES, headers=alice)).status_code == 200

    with_keys(scenario, keys, limited(concurrent_steps=1), models=MODELS)


def test_steps_of_all_sessions_of_an_owner(keys: pathlib.Path) -> None:
    async def scenario(server: RestServer) -> None:
        first, second = [
            await create(server, "alice", {"graph_def": encoded(endless_graph())}) for _ in range(2)
        ]
        loop = {"feeds": {"start": 1.0}, "fetches": ["loop"]}
        alice, bob = bearer("alice"), bearer("bob")
        running = asyncio.create_task(server.post(f"{first}:run", loop, headers=alice))
        while (await server.client.get(first, headers=alice)).json()["state"] != "RUNNING":
            await asyncio.sleep(0)
        answer = await server.post(f"{second}:run", loop, headers=alice)
        text = "1 steps of the owner's sessions wait or run, which is the most"
        check_error(answer, 429, "RESOURCE_EXHAUSTED", text)
        other = await create(server, "bob")
        answer = await server.post(f"{other}:run", {"targets": ["none"]}, headers=bob)
        assert answer.status_code == 404  # it may run a step; the target is unknown
        await server.client.delete(first, headers=alice)
        assert (await running).status_code == 499

    with_keys(scenario, keys, sessions={"max_owner_steps": 1})


def test_refusals_are_counted(keys: pathlib.Path) -> None:
    async def scenario(server: RestServer) -> None:
        session = await create(server, "alice")
        assert (await server.post("/v1/sessions")).status_code == 401
        assert (await server.client.get(session, headers=bearer("bob"))).status_code == 404
        assert (await server.post("/v1/sessions", headers=bearer("reader"))).status_code == 403
        metrics = await server.client.get("/monitoring/prometheus/metrics", headers=bearer("root"))
        lines = metrics.text.splitlines()
        for reason in ("unauthenticated", "owner", "role"):
            assert f'runstep_refusals_total{{front="rest",reason="{reason}"}} 1.0' in lines

    with_keys(scenario, keys)


async def completed(server: RestServer, pool: str) -> int:
    answer = await server.client.get("/v1/threadpools", headers=bearer("root"))
    (found,) = (each for each in answer.json()["thread_pools"] if each["name"] == pool)
    return int(found["completed"])


async def until_completed(server: RestServer, pool: str, count: int) -> None:
    """Wait until a pool has completed as many steps; it counts them after their answers."""
    while await completed(server, pool) < count:
        await asyncio.sleep(0)


def test_priorities_and_pools(keys: pathlib.Path) -> None:
    async def scenario(server: RestServer) -> None:
        await loaded(server)
        alice = bearer("alice")
        session = await create(server, "alice")
        done = await completed(server, "background")
        assert (await server.post(PREDICT, INSTANCES, headers=alice)).status_code == 200
        assert (await server.post(f"{session}:run", RUN_Y, headers=alice)).status_code == 200
        await until_completed(server, "background", done + 2)  # the first allowed priority
        pools = "session_inter_op_thread_pool"
        refused: list[tuple[str, Any, dict[str, str]]] = [
            (f"{session}:run", RUN_Y | {"priority": "normal"}, {}),
            (f"{session}:run", RUN_Y, {"x-priority": "normal"}),
            (f"{session}:run", RUN_Y | {"options": {"inter_op_thread_pool": 0}}, {}),
            (f"{session}:run", RUN_Y | {"options": {"inter_op_thread_pool": -1}}, {}),
            (PREDICT, INSTANCES, {"x-priority": "normal"}),
            ("/v1/sessions", {"config": {"use_per_session_threads": True}}, {}),
            ("/v1/sessions", {"config": {"inter_op_parallelism_threads": -1}}, {}),
            ("/v1/sessions", {"config": {pools: [{"num_threads": 1}]}}, {}),
            ("/v1/sessions", {"config": {pools: [{"global_name": "online"}]}}, {}),
        ]  # fmt: skip
        for path, body, headers in refused:
            answer = await server.post(path, body, headers=alice | headers)
            check_error(answer, 403, "PERMISSION_DENIED", " may ")
        done = await completed(server, "background")
        for index, status in ((-1, 403), (0, 200)):
            options: dict[str, Any] = {"feed": ["x:0"], "fetch": ["y:0"]}
            options |= {"run_options": {"inter_op_thread_pool": index}}
            made = await server.post(f"{session}:makeCallable", {"options": options}, headers=alice)
            call = made.json() | {"feeds": [[1.0]]}
            answer = await server.post(f"{session}:runCallable", call, headers=alice)
            assert answer.status_code == status, answer.text
        await until_completed(server, "background", done + 1)
        body = RUN_Y | {"options": {"inter_op_thread_pool": 1}}
        assert (await server.post(f"{session}:run", body, headers=alice)).status_code == 200
        setup = {"feeds": ["x:0"], "fetches": ["y:0"]}
        made = await server.post(f"{session}:partialRunSetup", setup, headers=alice)
        part = RUN_Y | made.json()
        done = await completed(server, "background")
        assert (await server.post(f"{session}:partialRun", part, headers=alice)).status_code == 200
        await until_completed(server, "background", done + 1)

    with_keys(scenario, keys, limited(priorities=["low"]), models=MODELS)


# --- texts --------------------------------------------------------------------------------------


def test_errors_show_paths_and_host_names_to_admins_only(
    keys: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "models" / "broken"
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "saved_model.pb").write_bytes(b"junk")

    async def scenario(server: RestServer) -> None:
        await loaded(server)
        for path in ("/v1/models/broken", "/v1/models"):
            secret = await server.client.get(path, headers=bearer("root"))
            assert str(folder) in secret.text
            shown = await server.client.get(path, headers=bearer("alice"))
            assert "[path]" in shown.text and str(tmp_path) not in shown.text

    models = [{"name": "broken", "base_path": str(folder)}]
    with_keys(scenario, keys, models=models, model_loading={"max_retries": 0})
    config = tmp_path / "models.config"
    entry = f"name: 'broken' base_path: '{folder}' model_platform: 'tensorflow'"
    config.write_text(f"model_config_list {{ config {{ {entry} }} }}")
    by_file = {"models": [], "model_config_file": str(config)}
    with_keys(scenario, keys, **by_file, model_loading={"max_retries": 0})


def test_an_unknown_op_does_not_name_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "secret-node-7")

    async def scenario(server: RestServer) -> None:
        import protos as pb

        graph = pb.GraphDef(node=[pb.NodeDef(name="n", op="NoSuchOp")])
        answer = await server.post("/v1/sessions", {"graph_def": encoded(graph)})
        check_error(answer, 404, "NOT_FOUND", "in binary running on [host]. Make sure")

    with_server(scenario)
