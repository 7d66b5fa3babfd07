"""Batching through REST: real models, many callers, one answer for each."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.integration.rest_server import RestServer, check_error, with_server
from tests.integration.test_served_models import until_settled

pytestmark = pytest.mark.usefixtures("both_ways")

EXAMPLES = Path(__file__).parents[2] / "examples" / "models"
PREDICT = "/v1/models/half_plus_two:predict"
HALF_PLUS_TWO = {"name": "half_plus_two", "base_path": str(EXAMPLES / "half_plus_two")}
LATE = "batch_timeout_micros { value: 60000000 }"  # no test waits for it


def parameters(folder: Path, text: str) -> dict[str, Any]:
    """Settings with these parameters."""
    path = folder / "batching.txt"
    path.write_text(text)
    return {"models": [HALF_PLUS_TWO], "batching": {"enabled": True, "parameters_file": str(path)}}


def version_folder(folder: Path, name: str = "half_plus_two") -> Path:
    """Copy an example's version 1; return its folder."""
    target = folder / name / "1"
    shutil.copytree(EXAMPLES / name / "1", target)
    return target


async def metric(server: RestServer, line: str) -> float:
    """The value of a metric; 0 if there is none."""
    text = (await server.client.get("/monitoring/prometheus/metrics")).text
    names = (f"{line} ", f"{line}{{}} ")  # as Prometheus and as TensorFlow Serving write it
    found = [each for each in text.splitlines() if each.startswith(names)]
    return float(found[0].rpartition(" ")[2]) if found else 0.0


async def until_queued(server: RestServer) -> None:
    """Wait until a step has come to a queue."""
    while not await metric(server, ":tensorflow:serving:batching_session:input_batch_size_count"):
        await asyncio.sleep(0)


PROCESSED_ROWS = ":tensorflow:serving:batching_session:processed_batch_size_sum"
RUNS = ":tensorflow:serving:batching_session:wrapped_run_count"


def test_callers_whose_batch_is_full_are_answered_together(tmp_path: Path) -> None:
    async def scenario(server: RestServer) -> None:
        await until_settled(server)
        answers = await asyncio.gather(
            *(server.post(PREDICT, {"instances": [float(n), n + 0.5]}) for n in range(8))
        )
        assert [answer.json() for answer in answers] == [
            {"predictions": [n / 2 + 2, n / 2 + 2.25]} for n in range(8)
        ]
        assert await metric(server, RUNS) == 2
        labels = 'model="half_plus_two",pool="online",priority="normal"'
        for figure in ("queue_steps", "wait_seconds", "run_seconds"):
            assert await metric(server, f"runstep_step_{figure}_count{{{labels}}}") == 8

    with_server(scenario, **parameters(tmp_path, f"max_batch_size {{ value: 8 }} {LATE}"))


def test_the_callers_of_all_apis_of_a_signature_get_what_they_get_alone(tmp_path: Path) -> None:
    calls = [
        (PREDICT, {"instances": [1.0, 2.0, 5.0]}),
        (PREDICT, {"inputs": [3.0]}),
        (PREDICT, {"instances": []}),
        (f"{PREDICT[:-7]}classify", {"examples": [{"x": 2.0}, {"x": 4.0}]}),
        (f"{PREDICT[:-7]}regress", {"examples": [{"x": 7.0}]}),
    ]
    found: list[list[Any]] = []

    async def scenario(server: RestServer) -> None:
        await until_settled(server)
        answers = await asyncio.gather(*(server.post(*call) for call in calls * 3))
        assert {answer.status_code for answer in answers} <= {200, 400}
        found.append([answer.json().get("error") or answer.json() for answer in answers])

    for batching in (
        {"enabled": False},
        {"enabled": True, "mode": "adaptive"},
        {"enabled": True, "mode": "parameters"},
    ):
        with_server(scenario, models=[HALF_PLUS_TWO], batching=batching)
    assert found[0] == found[1] == found[2]


def test_wrong_sizes_have_tensorflow_servings_texts(tmp_path: Path) -> None:
    async def scenario(server: RestServer) -> None:
        await until_settled(server)
        for body, text in (
            (
                {"instances": [1.0, 2.0, 3.0]},
                "Task size 3 is larger than maximum input batch size 2",
            ),
            ({"inputs": 3.0}, "Batching Run() input tensors must have at least one dimension"),
        ):
            check_error(await server.post(PREDICT, body), 400, "INVALID_ARGUMENT", text)

    with_server(scenario, **parameters(tmp_path, "max_batch_size { value: 2 }"))


def test_a_full_queue_is_503_and_a_deadline_leaves_it(tmp_path: Path) -> None:
    text = f"max_batch_size {{ value: 4 }} max_enqueued_batches {{ value: 1 }} {LATE}"

    async def scenario(server: RestServer) -> None:
        await until_settled(server)
        body = {"instances": [1.0, 2.0, 3.0]}
        waits = asyncio.create_task(server.post(PREDICT, body, headers={"X-Timeout-Ms": "2000"}))
        await until_queued(server)
        refused = await server.post(PREDICT, body)
        check_error(refused, 503, "UNAVAILABLE", "max_enqueued_batches is 1")
        check_error(await waits, 504, "DEADLINE_EXCEEDED", "Timed out")
        # The queue is empty again, so that what fits into one batch is taken, and runs once full.
        answers = await asyncio.gather(
            server.post(PREDICT, body), server.post(PREDICT, {"instances": [8.0]})
        )
        assert [answer.json()["predictions"] for answer in answers] == [[2.5, 3.0, 3.5], [6.0]]

    with_server(scenario, **parameters(tmp_path, text))


def test_a_client_that_goes_away_leaves_the_queue(tmp_path: Path) -> None:
    async def scenario(server: RestServer) -> None:
        await until_settled(server)
        gone = asyncio.create_task(server.post(PREDICT, {"instances": [1.0]}))
        await until_queued(server)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        in_flight = 1
        while in_flight:
            models = (await server.client.get("/v1/models")).json()["models"]
            in_flight = models[0]["versions"][0]["in_flight"]
        answers = await asyncio.gather(
            *(server.post(PREDICT, {"instances": [float(n)]}) for n in (4, 8))
        )
        assert [answer.json()["predictions"] for answer in answers] == [[4.0], [6.0]]
        assert (
            await metric(server, ":tensorflow:serving:batching_session:processed_batch_size_sum")
            == 2
        )

    with_server(scenario, **parameters(tmp_path, f"max_batch_size {{ value: 2 }} {LATE}"))


def test_low_priority_fills_padding_through_rest(tmp_path: Path) -> None:
    text = f"max_batch_size {{ value: 4 }} allowed_batch_sizes: 4 {LATE}"

    async def scenario(server: RestServer) -> None:
        await until_settled(server)
        low = asyncio.create_task(
            server.post(PREDICT, {"instances": [2.0]}, headers={"X-Priority": "low"})
        )
        await until_queued(server)
        normal = [server.post(PREDICT, {"instances": [float(n)] * 2}) for n in (4, 8)]
        answers = await asyncio.gather(*normal)
        assert [answer.json()["predictions"] for answer in answers] == [[4.0] * 2, [6.0] * 2]
        assert not low.done()  # the batch was full without it
        answers = await asyncio.gather(
            *(server.post(PREDICT, {"instances": [0.0] * size}) for size in (3, 3, 1))
        )
        assert all(answer.status_code == 200 for answer in answers)
        low.cancel()
        await asyncio.gather(low, return_exceptions=True)

    with_server(scenario, **parameters(tmp_path, text))


def test_models_say_how_their_signatures_are_batched(tmp_path: Path) -> None:
    own = version_folder(tmp_path)
    models = [
        {"name": "half_plus_two", "base_path": str(own.parent), "batching": {"mode": "adaptive"}},
        {"name": "counter", "base_path": str(EXAMPLES / "counter")},
        {
            "name": "plain",
            "base_path": str(EXAMPLES / "half_plus_two"),
            "batching": {"mode": "off"},
        },
    ]

    async def scenario(server: RestServer) -> None:
        await until_settled(server)
        listed = (await server.client.get("/v1/models")).json()["models"]
        found = {model["name"]: model["versions"][0].get("batching") for model in listed}
        assert found["half_plus_two"]["serving_default"] == {"mode": "adaptive"}
        assert found["counter"]["get_counter"] == {"refused": "it has no inputs"}
        assert found["plain"] is None

    with_server(scenario, models=models, batching={"enabled": True})


@pytest.mark.parametrize("place", ["assets.extra/batching_params.pbtxt", "batching_params.pbtxt"])
def test_a_version_has_parameters_of_its_own(tmp_path: Path, place: str) -> None:
    folder = version_folder(tmp_path)
    (folder / place).parent.mkdir(exist_ok=True)
    (folder / place).write_text("max_batch_size { value: 1 }")
    models = [{"name": "half_plus_two", "base_path": str(folder.parent)}]
    seen: list[int] = []

    async def scenario(server: RestServer) -> None:
        await until_settled(server)
        seen.append((await server.post(PREDICT, {"instances": [1.0, 2.0]})).status_code)

    for per_model in (True, False):
        settings = {"enabled": True, "per_model_parameters": per_model}
        with_server(scenario, models=models, batching=settings)
    assert seen == [400, 200]


def test_a_version_whose_parameters_are_wrong_does_not_serve(tmp_path: Path) -> None:
    folder = version_folder(tmp_path)
    (folder / "batching_params.pbtxt").write_text("max_batch_size { value: 0 }")

    async def scenario(server: RestServer) -> None:
        await until_settled(server)
        status = (await server.client.get("/v1/models/half_plus_two")).json()
        error = status["model_version_status"][0]["status"]
        assert error["error_code"] == "INVALID_ARGUMENT"
        assert "input_batch_size_limit must be positive; was 0" in error["error_message"]

    with_server(
        scenario,
        models=[{"name": "half_plus_two", "base_path": str(folder.parent)}],
        batching={"enabled": True, "per_model_parameters": True},
        model_loading={"max_retries": 0},
    )


@pytest.mark.parametrize("mode", ["adaptive", "parameters"])
def test_many_callers_at_the_same_time_get_their_own_answers(mode: str) -> None:
    async def scenario(server: RestServer) -> None:
        await until_settled(server)

        async def caller(number: int) -> None:
            for turn in range(12):
                rows = [float(number * 100 + turn + row) for row in range(1 + turn % 4)]
                body: dict[str, Any] = {"instances": rows}
                if number % 5 == 4:
                    body["priority"] = "low"
                if number % 7 == 6 and turn % 3 == 2:
                    body = {"instances": [[1.0]]}  # another rank, which this model accepts too
                    rows = [1.0]
                answer = await server.post(PREDICT, body)
                assert answer.status_code == 200, answer.text
                found = answer.json()["predictions"]
                flat = [each[0] if isinstance(each, list) else each for each in found]
                assert flat == [row / 2 + 2 for row in rows]

        await asyncio.gather(*map(caller, range(24)))

    with_server(scenario, models=[HALF_PLUS_TWO], batching={"enabled": True, "mode": mode})
