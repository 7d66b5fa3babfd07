"""What runs is changed, killed and replaced under load; every answer is counted."""

from __future__ import annotations

import collections
import contextlib
import copy
import hashlib
import os
import pathlib
import secrets
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import grpc
import httpx
import pytest
import yaml

import protos as pb
from tests.extras.ray.deployments import SECONDS, Commands, Deployment, deployed, until
from tests.integration.server_process import ROOT
from tests.ray_cluster import THINK_SECONDS, RayCluster

INFER = "/v2/models/half_plus_two/infer"
CALLERS = 3
REPLICA, FRONT = "model_half_plus_two", "front"
ADMINISTERED = {"admin": {"enabled": True}}


# Tests that need the same settings follow each other, because whatever differs must be deployed.


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The folder of half_plus_two, in which versions come."""
    made = tmp_path_factory.mktemp("models") / "half_plus_two"
    made.mkdir()
    new_version(made)
    return made


def new_version(folder: pathlib.Path) -> int:
    """Put another version into the folder, at once, and return its number."""
    version = 1 + newest_version(folder)
    made = folder / f".{version}"
    shutil.copytree(ROOT / "examples/models/half_plus_two/1", made)
    made.rename(folder / str(version))
    return version


def newest_version(folder: pathlib.Path) -> int:
    return max((int(each.name) for each in folder.glob("[0-9]*")), default=0)


@pytest.fixture(scope="module")
def deployment(
    one_node: RayCluster, commands: Commands, folder: pathlib.Path
) -> Iterator[Deployment]:
    model = {"name": "half_plus_two", "base_path": str(folder)}
    serve = {"replicas": 2, "cpus": 0.5, "fronts": 2}
    with deployed(one_node, folder.parent, [model], commands, **serve) as made:
        yield made


@pytest.fixture(scope="module")
def plain_settings(deployment: Deployment) -> dict[str, Any]:
    return copy.deepcopy(deployment.settings)


@pytest.fixture
def application(deployment: Deployment, plain_settings: dict[str, Any]) -> Deployment:
    """Two fronts and two replicas of half_plus_two, as at first."""
    return serving(deployment, plain_settings)


def serving(deployment: Deployment, settings: dict[str, Any]) -> Deployment:
    """Let the deployment have these settings, and two fronts and two replicas."""
    deployment.must_serve(settings)
    for name in (FRONT, REPLICA):
        until(lambda name=name: len(deployment.cluster.actors(name)) == 2)
    return deployment


@pytest.fixture
def administered(deployment: Deployment, plain_settings: dict[str, Any]) -> Deployment:
    """The same, with the calls of administrators."""
    return serving(deployment, plain_settings | ADMINISTERED)


@pytest.fixture
def slow(
    deployment: Deployment, plain_settings: dict[str, Any], folder: pathlib.Path
) -> Deployment:
    """The same, but each request waits two seconds in its replica, for others that never come."""
    parameters = folder.parent / "batching.txt"
    parameters.write_text(
        "max_batch_size { value: 1000 }\nbatch_timeout_micros { value: 2000000 }\n"
    )
    batching = {"mode": "parameters", "parameters_file": str(parameters)}
    (model,) = plain_settings["models"]
    return serving(deployment, plain_settings | {"models": [model | {"batching": batching}]})


class Load:
    """Callers that send one request after the other, each with a value of its own."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.right = self.wrong = 0
        self.failed: collections.Counter[str] = collections.Counter()
        self.versions: collections.Counter[str] = collections.Counter()
        self.longest = 0.0  # seconds of a request
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._call, args=(n,)) for n in range(CALLERS)]
        for thread in self._threads:
            thread.start()

    def _call(self, number: int) -> None:
        with httpx.Client(base_url=self._address, timeout=SECONDS) as client:
            value = number
            while not self._ended.is_set():
                value += CALLERS
                tensor = {"name": "x", "datatype": "FP32", "shape": [1], "data": [value % 1000]}
                began = time.monotonic()
                answer = client.post(INFER, json={"inputs": [tensor]})
                with self._lock:
                    self.longest = max(self.longest, time.monotonic() - began)
                    self._count(answer, value % 1000)
                self._ended.wait(THINK_SECONDS)

    def _count(self, answer: httpx.Response, value: int) -> None:
        if answer.status_code != 200:
            self.failed[f"{answer.status_code} {answer.text}"] += 1
            return
        told = answer.json()
        is_right = told["outputs"][0]["data"] == [value / 2 + 2]
        self.right, self.wrong = self.right + is_right, self.wrong + (not is_right)
        self.versions[told["model_version"]] += 1

    def more(self, count: int = 50) -> None:
        """Wait for some more right answers."""
        wanted = self.right + count
        until(lambda: self.right >= wanted)

    def end(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(SECONDS)


@contextlib.contextmanager
def load(application: Deployment) -> Iterator[Load]:
    """Load the application; no answer may be wrong."""
    made = Load(application.http_address)
    try:
        made.more()
        yield made
        made.more()
    finally:
        made.end()
    assert made.wrong == 0


def session_on(application: Deployment) -> dict[str, Any]:
    """What the listing says of a new session on the model."""
    opened = application.client.post("/v1/sessions", json={"model": "half_plus_two"})
    assert opened.status_code == 201, opened.text
    described: dict[str, Any] = application.client.get(opened.headers["location"]).json()
    return described


def test_versions_labels_and_numbers_change_without_a_restart(
    application: Deployment, folder: pathlib.Path
) -> None:
    model: dict[str, Any] = application.settings["models"][0]
    first = newest_version(folder)
    model |= {"version_policy": "specific", "specific_versions": [first]}
    application.must_deploy()
    second = new_version(folder)
    before = application.cluster.actors(REPLICA)
    fronts = application.cluster.actors(FRONT)
    assert (len(before), len(fronts)) == (2, 2)
    old = session_on(application)
    assert old["model"]["version"] == first
    with load(application) as made:
        model |= {
            "specific_versions": [first, second],
            "version_labels": {"new": second, "old": first},
        }
        application.must_deploy()
        assert application.cluster.actors(REPLICA) == before
        for label in ("new", "old") * 10:
            path = f"/v1/models/half_plus_two/labels/{label}:predict"
            answer = application.client.post(path, json={"instances": [1.0]})
            assert answer.json() == {"predictions": [2.5]}
        # Sessions are elsewhere, and have the same models.
        assert session_on(application)["model"]["version"] == second
        kept = application.client.get(f"/v1/sessions/{old['session']}").json()
        assert kept["model"]["version"] == first
        application.settings["ray"]["serve"]["replicas"] = 3
        application.must_deploy()
        assert application.cluster.actors(REPLICA).items() > before.items()
    assert not made.failed
    assert set(made.versions) == {str(first), str(second)}
    assert application.cluster.actors(FRONT) == fronts


def test_models_come_and_go(application: Deployment) -> None:
    counter = {"name": "counter", "base_path": str(ROOT / "examples/models/counter")}
    with load(application) as made:
        application.settings["models"].append(counter)
        application.must_deploy()
        listed = application.client.get("/v1/models").json()["models"]
        assert [model["name"] for model in listed] == ["half_plus_two", "counter"]
        application.settings["models"].pop()
        application.must_deploy()
        until(lambda: application.client.get("/v1/models/counter").status_code == 404)
    assert not made.failed


def test_a_new_version_is_switched_to_in_every_replica(
    application: Deployment, folder: pathlib.Path
) -> None:
    old, new = str(newest_version(folder)), str(newest_version(folder) + 1)
    with load(application) as made:
        new_version(folder)
        until(lambda: made.versions[new] > 0)
        time.sleep(2)  # both replicas have looked then, ten times
        answers = made.versions[old]
        made.more(100)
        assert made.versions[old] == answers
    assert not made.failed


def kill_one(application: Deployment, name: str) -> float:
    """Kill the process of a replica; when that was."""
    os.kill(next(iter(application.cluster.actors(name).values())), signal.SIGKILL)
    return time.monotonic()


def is_of_an_ended_replica(text: str) -> bool:
    return text.startswith("503 ") and "ended while" in text


def test_a_replica_that_dies_under_load(application: Deployment) -> None:
    with load(application) as made:
        kill_one(application, REPLICA)
        made.more(300)
        until(lambda: len(application.cluster.actors(REPLICA)) == 2)
    assert made.failed.total() <= CALLERS
    assert not [text for text in made.failed if not is_of_an_ended_replica(text)]


def test_a_front_that_dies_under_load(application: Deployment) -> None:
    with load(application) as made:
        kill_one(application, FRONT)
        made.more(300)
        until(lambda: len(application.cluster.actors(FRONT)) == 2)
    assert made.failed.total() <= CALLERS
    assert all(text.startswith(("500 ", "503 ")) for text in made.failed)
    assert application.client.get("/readyz").status_code == 200


def test_the_only_replica_dies_under_load(application: Deployment) -> None:
    application.settings["ray"]["serve"]["replicas"] = 1
    application.must_deploy()
    with load(application) as made:
        killed_at = kill_one(application, REPLICA)
        made.more(CALLERS)
        seconds = time.monotonic() - killed_at
        made.more()
    assert not [text for text in made.failed if not is_of_an_ended_replica(text)]
    assert seconds < SECONDS


def test_a_change_that_fails_leaves_what_serves(application: Deployment) -> None:
    model: dict[str, Any] = application.settings["models"][0]
    good = dict(model)
    replicas = application.cluster.actors(REPLICA)
    with load(application) as made:
        model["version_labels"] = {"stable": 99}
        done = application.deploy()
        assert done.returncode == 1
        assert "Model half_plus_two: Request to assign label to version 99" in done.stderr
        model.clear()
        model |= good | {"base_path": "/nonexistent"}
        done = application.deploy()
        assert done.returncode == 1
        assert "Model half_plus_two: Could not find base path /nonexistent" in done.stderr
        model |= good
        # What only a new replica can find out: Ray Serve starts it before it ends an old one.
        application.settings["access"] = {"keys_file": "/nonexistent"}
        done = application.deploy()
        assert done.returncode == 1
        # Whichever fails first, the replica or the front.
        assert "What does not serve: " in done.stderr
        assert ": INVALID_ARGUMENT: Cannot read /nonexistent" in done.stderr
        assert "Traceback" not in done.stderr
        made.more()
        assert application.cluster.actors(REPLICA).items() >= replicas.items()
        del application.settings["access"]
        application.must_deploy()
    assert not made.failed


def test_any_other_change_replaces_the_replicas(application: Deployment) -> None:
    before = application.cluster.actors(REPLICA)
    with load(application) as made:
        application.settings |= ADMINISTERED
        application.must_deploy()
        assert not application.cluster.actors(REPLICA).keys() & before.keys()
    assert not made.failed


def test_calls_change_no_model(administered: Deployment) -> None:
    path = "/v2/repository/models/half_plus_two/unload"
    refused = administered.client.post(path, json={})
    assert refused.status_code == 400
    assert "`runstep deploy ray` with a changed configuration does" in refused.json()["error"]
    reload = pb.serving.ReloadConfigRequest()
    reload.config.model_config_list.config.add(
        name="half_plus_two", base_path="/", model_platform="tensorflow"
    )
    method = "/tensorflow.serving.ModelService/HandleReloadConfigRequest"
    with (
        grpc.insecure_channel(administered.grpc_address) as channel,
        pytest.raises(grpc.RpcError) as caught,
    ):
        channel.unary_unary(method)(reload.SerializeToString(), timeout=SECONDS)
    assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert administered.client.get("/v1/models/half_plus_two").status_code == 200


def waiting(application: Deployment, count: int) -> Iterator[tuple[int, str]]:
    """Send requests at the same time; when their steps wait, the caller is asked to go on."""
    body = {"instances": [1.0]}
    with futures.ThreadPoolExecutor(count) as threads, httpx.Client(timeout=SECONDS) as client:
        url = f"{application.http_address}/v1/models/half_plus_two:predict"
        sent = [threads.submit(client.post, url, json=body) for _ in range(count)]
        time.sleep(1.0)
        yield (0, "")
        for each in sent:
            answer = each.result()
            yield answer.status_code, answer.text


@pytest.mark.parametrize("name", [REPLICA, FRONT])
def test_requests_that_run_when_their_process_dies(slow: Deployment, name: str) -> None:
    answers = waiting(slow, 8)
    next(answers)
    kill_one(slow, name)
    told = collections.Counter(answers)
    right = told.pop((200, '{"predictions":[2.5]}'))
    assert 0 < right < 8
    for status, text in told:
        assert status in (500, 503)
        assert name == FRONT or "ended while it had the request" in text
    until(lambda: len(slow.cluster.actors(name)) == 2)


def test_a_client_that_goes_away_cancels_its_call(slow: Deployment) -> None:
    slow.settings["ray"]["serve"]["replicas"] = 1
    slow.must_deploy()

    def in_flight() -> int:
        (model,) = slow.client.get("/v1/models").json()["models"]
        found: int = model["versions"][0]["in_flight"]
        return found

    path = "/v1/models/half_plus_two:predict"
    for _ in range(3):  # as cancelled calls count until they have ended
        began = time.monotonic()
        with pytest.raises(httpx.ReadTimeout):
            slow.client.post(path, json={"instances": [1.0]}, timeout=0.4)
        until(lambda: in_flight() == 0)
        assert time.monotonic() - began < 1.5  # the step would have waited for two seconds


def test_keys_are_checked(
    deployment: Deployment, plain_settings: dict[str, Any], tmp_path: pathlib.Path
) -> None:
    key = secrets.token_urlsafe(32)
    file = tmp_path / "keys.yaml"
    digest = hashlib.sha256(key.encode()).hexdigest()
    file.write_text(yaml.safe_dump({"owners": {"team": {"roles": ["predict"], "keys": [digest]}}}))
    deployment.must_serve(plain_settings | {"access": {"keys_file": str(file)}})
    path = "/v1/models/half_plus_two:predict"
    refused = deployment.client.post(path, json={"instances": [1.0]})
    assert (refused.status_code, refused.json()["code"]) == (401, "UNAUTHENTICATED")
    headers = {"authorization": f"Bearer {key}"}
    taken = deployment.client.post(path, json={"instances": [1.0]}, headers=headers)
    assert taken.json() == {"predictions": [2.5]}
    method = "/tensorflow.serving.ModelService/GetModelStatus"
    spec = pb.serving.ModelSpec(name="half_plus_two")
    request = pb.serving.GetModelStatusRequest(model_spec=spec).SerializeToString()
    with grpc.insecure_channel(deployment.grpc_address) as channel:
        call = channel.unary_unary(method)
        with pytest.raises(grpc.RpcError) as caught:
            call(request, timeout=SECONDS)
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
        assert call(request, timeout=SECONDS, metadata=[*headers.items()])
