"""Budgets of memory over REST: steps that need too much end, and new work waits for memory."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

from runtime.api import process_account
from tests.conformance.case import Graph
from tests.integration.rest_server import (
    HALF_PLUS_TWO,
    RUN_Y,
    RestServer,
    check_error,
    encoded,
    with_server,
)

pytestmark = pytest.mark.usefixtures("both_ways", "limits_end")
MIB = 1 << 20


@pytest.fixture
def limits_end() -> Iterator[None]:
    """End the limits of the process with the test."""
    yield
    process_account.remove_limits()


def staging_graph() -> dict[str, str]:
    """`stage` keeps 1 MiB, `fill` returns the shape of `n` floats, `x` is fed."""
    graph = Graph()
    dims = graph.placeholder("int32", "n")
    value = graph.add("Fill", dims, np.float32(1), name="fill")[0]
    graph.add("Stage", [value], dtypes=["float32"], name="stage")
    graph.add("Shape", value, name="shape")
    return {"graph_def": encoded(graph.graph_def)}


def stage(mib: int) -> dict[str, object]:
    return {"feeds": {"n:0": [mib, 1 << 18]}, "targets": ["stage"]}


# What refuses is the account of the step, before the kernel of Fill is called.
OF_SESSION = "the limit is 8388608 (sessions.max_session_bytes)"
OF_STEP = "the limit is 3145728 (sessions.max_step_bytes)"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"sessions": {"max_session_bytes": 8 * MIB}}, OF_SESSION),
        ({"memory": {"max_process_bytes": 16 * MIB}}, OF_SESSION),  # half of it
        ({"sessions": {"max_step_bytes": 3 * MIB}}, OF_STEP),
    ],
)
def test_a_step_that_needs_too_much_ends(settings: dict[str, dict[str, int]], text: str) -> None:
    async def scenario(server: RestServer) -> None:
        session = await server.create(staging_graph())
        other = await server.create(HALF_PLUS_TWO)
        statuses = []
        for _ in range(6):
            answer = await server.post(f"{session}:run", stage(3))
            statuses.append(answer.status_code)
            if text is OF_STEP:
                answer = await server.post(f"{session}:run", stage(4))
                check_error(answer, 429, "RESOURCE_EXHAUSTED", text)
                continue
            if answer.status_code != 200:
                check_error(answer, 429, "RESOURCE_EXHAUSTED", text)
                assert "Retry-After" in answer.headers
        assert statuses == ([200] * 6 if text is OF_STEP else [200] * 2 + [429] * 4)
        assert (await server.post(f"{other}:run", RUN_Y)).status_code == 200
        step = {"feeds": {"n:0": [2, 3]}, "fetches": ["shape:0"]}
        answer = await server.post(f"{session}:run", step)
        assert answer.json()["outputs"]["shape:0"]["data"] == [2, 3]

    with_server(scenario, **settings)


def test_sessions_share_what_the_process_has() -> None:
    async def scenario(server: RestServer) -> None:
        sessions = [await server.create(staging_graph()) for _ in range(3)]
        answers = [await server.post(f"{each}:run", stage(3)) for each in sessions]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        check_error(answers[2], 429, "RESOURCE_EXHAUSTED", "(memory.max_process_bytes)")
        metrics = (await server.client.get("/monitoring/prometheus/metrics")).text
        figures = dict(re.findall(r"^runstep_memory_(\w+)_bytes (\S+)$", metrics, re.MULTILINE))
        assert (float(figures["used"]), float(figures["limit"])) == (6 * MIB, 8 * MIB)
        assert float(figures["resident"]) < float(figures["resident_limit"])
        assert (await server.post(f"{sessions[0]}:close")).status_code == 200
        assert (await server.post(f"{sessions[2]}:run", stage(3))).status_code == 200

    with_server(
        scenario, memory={"max_process_bytes": 8 * MIB}, sessions={"max_session_bytes": 8 * MIB}
    )


def test_new_work_is_refused_above_the_watermark_and_can_be_ended() -> None:
    async def scenario(server: RestServer) -> None:
        session = await server.create(HALF_PLUS_TWO)
        process_account.set_limits(None, 1)
        process_account._next_glance = 0.0
        for path, body in (("/v1/sessions", HALF_PLUS_TWO), (f"{session}:run", RUN_Y)):
            answer = await server.post(path, body)
            check_error(answer, 429, "RESOURCE_EXHAUSTED", "(memory.refuse_above_bytes)")
            assert "Retry-After" in answer.headers
        assert (await server.client.get("/healthz")).status_code == 200
        metrics = (await server.client.get("/monitoring/prometheus/metrics")).text
        assert "runstep_memory_resident_limit_bytes 1.0" in metrics
        assert (await server.post(f"{session}:close")).status_code == 200

    with_server(scenario)
