"""Sessions on served models: each starts from the template, and what it does stays its own."""

from __future__ import annotations

import asyncio
import pathlib
import shutil

import pytest

import protos as pb
from tests.integration.rest_server import RestServer, check_error, encoded, with_server

pytestmark = pytest.mark.usefixtures("both_ways")

COUNTER = pathlib.Path(__file__).parents[1] / "fixtures" / "saved_models" / "counter"
READ = {"fetches": ["get_counter:0"]}
INCREMENT = {"fetches": ["AssignAdd:0"]}


@pytest.fixture
def models(tmp_path):
    shutil.copytree(COUNTER, tmp_path / "counter" / "3")
    return {"models": ({"name": "counter", "base_path": str(tmp_path / "counter"),
                        "version_labels": {"stable": 3}},)}  # fmt: skip


async def until_ready(server: RestServer) -> None:
    while (await server.client.get("/readyz")).status_code != 200:
        await asyncio.sleep(0)


async def value(server: RestServer, session: str, body: object) -> float:
    answer = await server.post(f"{session}:run", body)
    assert answer.status_code == 200, answer.text
    (output,) = answer.json()["outputs"].values()
    return output["data"]


def test_sessions_share_weights_until_they_assign_and_see_nothing_of_each_other(models):
    async def scenario(server: RestServer) -> None:
        await until_ready(server)
        incremented = await server.post(
            "/v1/models/counter:predict", {"signature_name": "incr_counter", "inputs": {}}
        )
        assert incremented.status_code == 200, incremented.text
        one = await server.create({"model": "counter", "label": "stable", "tags": ["serve"]})
        two = await server.create({"model": "counter", "version": 3})
        start = await value(server, one, READ)
        assert start == await value(server, two, READ)  # the template's, not the served session's
        assert await value(server, one, INCREMENT) == start + 1
        assert await value(server, one, INCREMENT) == start + 2
        assert await value(server, one, READ) == start + 2
        assert await value(server, two, READ) == start
        described = (await server.client.get(one)).json()
        assert described["model"] == {"name": "counter", "version": 3}
        assert described["shared_weights"] is True

    with_server(scenario, **models)


def test_wrong_versions_labels_and_tags(models):
    async def scenario(server: RestServer) -> None:
        await until_ready(server)
        for extra, status, code, text in (
            ({"version": 4}, 404, "NOT_FOUND", "Specific(counter, 4)"),
            ({"label": "canary"}, 400, "INVALID_ARGUMENT", "Unrecognized servable version label"),
            ({"tags": ["serve", "gpu"]}, 400, "INVALID_ARGUMENT", "loaded with the tags ['serve']"),
            ({"tags": []}, 400, "INVALID_ARGUMENT", "got []"),
        ):
            answer = await server.post("/v1/sessions", {"model": "counter"} | extra)
            check_error(answer, status, code, text)

    with_server(scenario, **models)


def test_a_model_that_is_still_loading_is_503(models):
    async def scenario(server: RestServer) -> None:
        # Nothing has been polled yet: the poller's thread is told not to.
        answer = await server.post("/v1/sessions", {"model": "counter"})
        check_error(answer, 503, "UNAVAILABLE", "Still loading")
        assert answer.headers["retry-after"] == "1"

    with_server(scenario, **models, model_poll_seconds=-1)


def test_resources_cannot_be_fetched_or_fed():
    graph = pb.GraphDef()
    handle = graph.node.add(name="handle", op="VarHandleOp")
    handle.attr["dtype"].type = pb.DT_FLOAT
    handle.attr["shape"].shape.SetInParent()

    async def scenario(server: RestServer) -> None:
        session = await server.create({"graph_def": encoded(graph)})
        answer = await server.post(f"{session}:run", {"fetches": ["handle"]})
        check_error(answer, 400, "INVALID_ARGUMENT", "type resource, which cannot be fetched")
        answer = await server.post(f"{session}:run", {"feeds": {"handle": 1}, "targets": ["x"]})
        check_error(answer, 400, "INVALID_ARGUMENT", "type resource, which cannot be fed")

    with_server(scenario)
