"""Every query of the dashboard finds series on a real page, with the labels that it shows."""

from __future__ import annotations

import asyncio
import json
import math
import pathlib
import re
import shutil

import numpy as np
import pytest

import protos as pb
from runtime.api import tensor_to_proto
from runtime.framework.io.record_writer import framed
from tests.integration.access import bearer, write_keys
from tests.integration.promql import Page, evaluate, read_page
from tests.integration.rest_server import HALF_PLUS_TWO, RUN_Y, RestServer, with_server
from tools.write.dashboard import PATH, text

MODEL = pathlib.Path(__file__).parents[1] / "fixtures" / "saved_models" / "half_plus_two"
VARIABLES = {"$model": ".*", "$__rate_interval": "1m"}
QUERIES = [
    (panel["title"], target["expr"], target["legendFormat"])
    for panel in json.loads(PATH.read_text())["panels"]
    for target in panel.get("targets", ())
]


def test_the_file_is_what_the_tool_writes() -> None:
    assert PATH.read_text() == text()


def test_panels_do_not_overlap() -> None:
    cells: set[tuple[int, int]] = set()
    for panel in json.loads(PATH.read_text())["panels"]:
        place = panel["gridPos"]
        covered = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not covered & cells, panel["title"]
        assert place["x"] + place["w"] <= 24
        cells |= covered


async def traffic(server: RestServer) -> None:
    """Something of everything that the dashboard shows."""
    headers = bearer("alice")
    calls = [
        ("m:predict", {"instances": [1.0, 2.0]}, {}),
        ("m:predict", {"instances": [1.0, 2.0]}, {"X-Priority": "low"}),
        ("m:predict", {"instances": ["x"]}, {}),
        ("m:regress", {"signature_name": "regress_x_to_y", "examples": [{"x": 1.0}]}, {}),
        ("nope:predict", {"instances": [1.0]}, {}),
    ]
    for path, body, more in calls:
        await server.post(f"/v1/models/{path}", body, headers={**headers, **more})
    await server.client.get("/v1/models/m", headers=headers)
    await server.post("/v1/models/m:predict", {"instances": [1.0]})  # refused
    opened = await server.post("/v1/sessions", HALF_PLUS_TWO, headers=headers)
    session = opened.headers["location"]
    assert (await server.post(f"{session}:run", RUN_Y, headers=headers)).status_code == 200
    await server.post(f"{session}:close", headers=headers)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Page, Page]:
    """Two scrapes of a server that is used before each."""
    folder = tmp_path_factory.mktemp("dashboard")
    version = folder / "m" / "1"
    shutil.copytree(MODEL, version)
    request = pb.serving.PredictRequest()
    request.inputs["x"].CopyFrom(tensor_to_proto(np.float32([1])))
    (version / "assets.extra").mkdir(exist_ok=True)
    log = pb.serving.PredictionLog(predict_log=pb.serving.PredictLog(request=request))
    records = version / "assets.extra" / "tf_serving_warmup_requests"
    records.write_bytes(framed(log.SerializeToString()))
    found: list[Page] = []

    async def scenario(server: RestServer) -> None:
        assert await asyncio.to_thread(server.services.models.wait_until_settled, 60)
        for _ in range(2):
            await traffic(server)
            path = "/monitoring/prometheus/metrics"
            answer = await server.client.get(path, headers=bearer("root"))
            found.append(read_page(answer.text))

    with_server(
        scenario,
        models=({"name": "m", "base_path": str(folder / "m")},),
        access={"keys_file": write_keys(folder / "keys.yaml")},
        batching={"enabled": True},
        memory={"refuse_above_bytes": 1 << 40},
    )
    return found[0], found[1]


def expanded(query: str) -> str:
    for name, value in VARIABLES.items():
        query = query.replace(name, value)
    assert "$" not in query
    return query


@pytest.mark.parametrize(("title", "query", "legend"), QUERIES, ids=[each[1] for each in QUERIES])
def test_a_query_finds_series(
    title: str, query: str, legend: str, pages: tuple[Page, Page]
) -> None:
    found = evaluate(expanded(query), *pages)
    assert found, title
    assert not any(map(math.isnan, found.values())), title
    shown = set(re.findall(r"\{\{(\w+)\}\}", legend))
    for labels in found:
        assert shown <= dict(labels).keys(), (title, labels)


def test_the_variable_has_the_models(pages: tuple[Page, Page]) -> None:
    listed = json.loads(PATH.read_text())["templating"]["list"]
    (query,) = (each["query"] for each in listed if each["name"] == "model")
    metric, label = re.fullmatch(r"label_values\((\S+), (\w+)\)", query).groups()  # type: ignore[union-attr] # it matches
    assert {dict(labels)[label] for labels in pages[1][metric]} == {"m", "nope"}
