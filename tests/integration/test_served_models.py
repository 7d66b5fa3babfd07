"""Real SavedModels behind TensorFlow Serving's API: answers agree with what TensorFlow answered.

Each fixture's `io.npz` holds the calls `<order>/<signature>/{inputs,outputs}/<alias>` that
TensorFlow was given, in the order in which it was given them.
"""

from __future__ import annotations

import asyncio
import base64
import collections
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.integration.rest_server import RestServer, with_server

pytestmark = pytest.mark.usefixtures("both_ways")

FIXTURES = Path(__file__).parents[1] / "fixtures" / "saved_models"
# What predict cannot carry, in TensorFlow Serving either; a session runs them (test_corpus.py).
REFUSED = {
    "audio": "complex64",
    "sparse_inputs": "Missing named input: counts in 'inputs' object.",
}
MODELS = sorted({path.parent.name for path in FIXTURES.glob("*/io.npz")} - REFUSED.keys())


def serve(base: Path, *names: str) -> list[dict[str, Any]]:
    """Model settings for fixtures, each as version 1 below `base`."""
    for name in names:
        (base / name).mkdir()
        (base / name / "1").symlink_to(FIXTURES / name)
    return [{"name": name, "base_path": str(base / name)} for name in names]


async def until_settled(server: RestServer) -> None:
    settled = await asyncio.to_thread(server.services.models.wait_until_settled, 60)
    assert settled


Call = tuple[str, dict[str, np.ndarray], dict[str, np.ndarray]]


def recorded_calls(name: str) -> Iterator[Call]:
    """(signature, inputs, outputs) in order."""
    calls: dict[tuple[int, str], dict[str, dict[str, np.ndarray]]] = collections.defaultdict(
        lambda: {"inputs": {}, "outputs": {}}
    )
    with np.load(FIXTURES / name / "io.npz") as archive:
        for key in archive.files:
            order, signature, kind, alias = key.split("/", 3)
            calls[int(order), signature][kind][alias] = archive[key]
    for (_, signature), call in sorted(calls.items()):
        yield signature, call["inputs"], call["outputs"]


def as_json(array: np.ndarray) -> Any:
    if array.dtype.kind != "S":
        return array.tolist()
    encode = np.frompyfunc(lambda item: {"b64": base64.b64encode(item).decode()}, 1, 1)
    return encode(array).tolist()


def check(actual: Any, expected: np.ndarray) -> None:
    if expected.dtype.kind == "S":
        assert actual == np.char.decode(expected).tolist()
    else:
        # What sums of terms leave near 0 is as uncertain as the terms are large.
        largest = float(np.abs(expected).max(initial=1))
        np.testing.assert_allclose(
            np.array(actual, expected.dtype), expected, rtol=1e-4, atol=1e-6 * largest
        )


@pytest.mark.parametrize("name", MODELS)
def test_predictions_agree_with_tensorflow(name: str, tmp_path: Path) -> None:
    async def scenario(server: RestServer) -> None:
        await until_settled(server)
        for signature, inputs, outputs in recorded_calls(name):
            body = {
                "signature_name": signature,
                "inputs": {alias: as_json(array) for alias, array in inputs.items()},
            }
            answer = await server.post(f"/v1/models/{name}:predict", body)
            assert answer.status_code == 200, answer.text
            values = answer.json()["outputs"]
            if len(outputs) == 1:
                values = {next(iter(outputs)): values}
            assert values.keys() == outputs.keys()
            for alias, expected in outputs.items():
                check(values[alias], expected)

    with_server(scenario, models=serve(tmp_path, name))


@pytest.mark.parametrize("name", REFUSED)
def test_what_predict_cannot_carry_is_refused(name: str, tmp_path: Path) -> None:
    async def scenario(server: RestServer) -> None:
        await until_settled(server)
        signature, inputs, _ = next(recorded_calls(name))
        body = {
            "signature_name": signature,
            "inputs": {alias: as_json(array) for alias, array in inputs.items()},
        }
        answer = await server.post(f"/v1/models/{name}:predict", body)
        assert answer.status_code == 400
        assert REFUSED[name] in answer.json()["error"]

    with_server(scenario, models=serve(tmp_path, name))


def test_classify_and_regress(tmp_path: Path) -> None:
    async def scenario(server: RestServer) -> None:
        await until_settled(server)
        examples = [{"x": 80.0}, {"x": [20.0]}]
        classified = await server.post(
            "/v1/models/half_plus_two:classify",
            {"signature_name": "classify_x_to_y", "examples": examples},
        )
        assert classified.json() == {
            "results": [[["half", 42.0], ["two", -41.0]], [["half", 12.0], ["two", -11.0]]]
        }
        regressed = await server.post(
            "/v1/models/half_plus_two:regress",
            {"signature_name": "regress_x_to_y", "context": {"x": 10.0}, "examples": [{}, {}]},
        )
        assert regressed.json() == {"results": [7.0, 7.0]}

    with_server(scenario, models=serve(tmp_path, "half_plus_two"))


@pytest.mark.parametrize(
    ("documented", "choice"),
    [("", ""), ("/versions/{version}", "/versions/1"), ("/labels/{label}", "/labels/stable")],
)
def test_the_examples_of_the_docs_work(tmp_path: Path, documented: str, choice: str) -> None:
    async def scenario(server: RestServer) -> None:
        await until_settled(server)
        schema = (await server.client.get("/openapi.json")).json()
        for call, answer in (
            ("predict", {"predictions": [2.5, 3.0, 4.5]}),
            ("regress", {"results": [42.0]}),
            ("classify", {"results": [[["half", 12.0], ["two", -11.0]]]}),
        ):
            operation = schema["paths"][f"/v1/models/{{name}}{documented}:{call}"]["post"]
            name = operation["parameters"][0]["example"]
            body = operation["requestBody"]["content"]["application/json"]["example"]
            response = await server.post(f"/v1/models/{name}{choice}:{call}", body)
            assert response.json() == answer

    (model,) = serve(tmp_path, "half_plus_two")
    with_server(scenario, models=[model | {"version_labels": {"stable": 1}}])


def test_a_new_version_appears_and_an_old_one_goes(tmp_path: Path) -> None:
    models = serve(tmp_path, "half_plus_two")

    async def scenario(server: RestServer) -> None:
        await until_settled(server)
        folder = tmp_path / "half_plus_two"
        shutil.copytree(FIXTURES / "half_plus_two", folder / "2")
        manager = server.services.models
        await asyncio.to_thread(manager.poll)
        await until_settled(server)
        answer = await server.client.get("/v1/models/half_plus_two/metadata")
        assert answer.json()["model_spec"]["version"] == "2"
        gone = await server.post("/v1/models/half_plus_two/versions/1:predict", {"instances": [1]})
        assert gone.status_code == 404

    with_server(scenario, models=models, model_poll_seconds=0)


def test_low_priority_predictions_run_on_their_pool(tmp_path: Path) -> None:
    async def scenario(server: RestServer) -> None:
        await until_settled(server)
        while (background := (await server.pools())["background"])["running"]:
            await asyncio.sleep(0)  # the load is over, but its task has yet to be counted
        answer = await server.post(
            "/v1/models/half_plus_two:predict", {"instances": [1.0], "priority": "low"}
        )
        assert answer.json() == {"predictions": [2.5]}
        after = (await server.pools())["background"]
        assert after["completed"] == background["completed"] + 1

    with_server(scenario, models=serve(tmp_path, "half_plus_two"))


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (lambda folder: (folder / "saved_model.pb").write_bytes(b"junk"), "OUT_OF_RANGE"),
        (lambda folder: (folder / "saved_model.pb").unlink(), "NOT_FOUND"),
        (lambda folder: next(folder.glob("variables/*.data-*")).unlink(), "NOT_FOUND"),
        (lambda folder: _flip_a_bit(next(folder.glob("variables/*.data-*"))), "DATA_LOSS"),
    ],
    ids=["junk", "no graph", "no data", "bit flipped"],
)
def test_a_damaged_model_says_what_is_wrong(tmp_path: Path, damage: Any, code: str) -> None:
    folder = tmp_path / "m" / "1"
    shutil.copytree(FIXTURES / "half_plus_two", folder)
    damage(folder)

    async def scenario(server: RestServer) -> None:
        await until_settled(server)
        answer = await server.client.get("/v1/models/m")
        (status,) = answer.json()["model_version_status"]
        assert status["state"] == "END"
        assert status["status"]["error_code"] == code, status
        assert (await server.client.get("/readyz")).status_code == 503
        assert (await server.client.get("/healthz")).status_code == 200

    with_server(
        scenario,
        models=[{"name": "m", "base_path": str(tmp_path / "m")}],
        model_loading={"max_retries": 0},
    )


def _flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)
