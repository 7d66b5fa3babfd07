"""`placement: ray`: changes of the served models hold in all hosts and front ends, or in none."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
from typing import Any

import grpc
import pytest
import ray

import protos as pb
from tests.extras.ray.front_ends import (
    SECONDS,
    FrontEnds,
    counter_graph,
    directory_of,
    host_ids_of,
    hosts_of,
    until,
)
from tests.integration.server_process import ROOT, ServerProcess

MODEL = ROOT / "examples" / "models" / "half_plus_two"


@pytest.fixture
def models(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder with the models `first` and `second`, one that can't be loaded, and a version 2."""
    folder = tmp_path / "models"
    for name in ("first", "second", "broken"):
        shutil.copytree(MODEL, folder / name)
    (folder / "broken" / "1" / "saved_model.pb").write_bytes(b"no model")
    shutil.copytree(MODEL / "1", folder / "newer" / "2")
    return folder


def administered(folder: pathlib.Path, **settings: Any) -> dict[str, Any]:
    """The settings of a server whose clients may change its models."""
    admin = {"enabled": True, "model_folders": [str(folder)]}
    return {"models": [], "admin": admin, "model_loading": {"max_retries": 0}, **settings}


def change(server: ServerProcess, name: str, call: str) -> tuple[int, str]:
    """Load or unload a model; the status, and the text of an error."""
    path = f"/v2/repository/models/{name}/{call}"
    answer = server.client.post(path, json={}, timeout=SECONDS)
    return answer.status_code, answer.json().get("error", "") if answer.content else ""


def sessions_on(server: ServerProcess, name: str, count: int = 4) -> list[dict[str, Any]]:
    """What the listing says of new sessions on a model; each node gets some."""
    found = []
    for _ in range(count):
        answer = server.client.post("/v1/sessions", json={"model": name}, timeout=SECONDS)
        assert answer.status_code == 201, answer.text
        found.append(server.client.get(answer.headers["location"]).json())
    assert len({each["session"].rpartition("-r")[2] for each in found}) == min(count, 2)
    return found


def refusals_on(server: ServerProcess, name: str) -> set[int]:
    """The statuses of sessions that can't be opened, on each node."""
    body = {"model": name}
    return {server.client.post("/v1/sessions", json=body).status_code for _ in range(4)}


def predicts(server: ServerProcess, name: str) -> int:
    path = f"/v1/models/{name}:predict"
    return server.client.post(path, json={"instances": [1.0]}).status_code


def on_each_node(server: ServerProcess) -> None:
    """Open sessions, so that each node has a host."""
    for _ in range(2):
        body = {"graph_def": counter_graph()}
        assert server.client.post("/v1/sessions", json=body, timeout=SECONDS).status_code == 201


def versions(found: list[dict[str, Any]]) -> set[int]:
    return {each["model"]["version"] for each in found}


def reload(server: ServerProcess, seconds: float = SECONDS, **folders: pathlib.Path) -> None:
    """HandleReloadConfigRequest with version 2 of some models."""
    request = pb.serving.ReloadConfigRequest()
    for name, folder in folders.items():
        model = request.config.model_config_list.config.add(
            name=name, base_path=str(folder), model_platform="tensorflow"
        )
        model.model_version_policy.specific.versions.append(2)
    method = "/tensorflow.serving.ModelService/HandleReloadConfigRequest"
    with grpc.insecure_channel(server.grpc_address.removeprefix("grpc://")) as channel:
        channel.unary_unary(method)(request.SerializeToString(), timeout=seconds)


def test_a_change_holds_everywhere_or_nowhere(front: FrontEnds, models: pathlib.Path) -> None:
    a, b = front.two("changes", administered(models))
    on_each_node(a)
    assert change(a, "first", "load") == (200, "")
    old = sessions_on(b, "first")
    assert versions(old) == {1}
    assert predicts(b, "first") == 200
    assert change(a, "broken", "load")[0] >= 400
    assert refusals_on(a, "broken") == refusals_on(b, "broken") == {404}
    # A host that does not answer in time: none changes.
    stopped, *_ = (each["process_id"] for each in hosts_of("changes").values())
    os.kill(stopped, signal.SIGSTOP)
    try:
        with pytest.raises(grpc.RpcError):
            reload(b, 2.0, second=models / "newer", first=models / "newer")
        until(lambda: predicts(b, "second") == predicts(a, "second") == 404)
    finally:
        os.kill(stopped, signal.SIGCONT)
    until(lambda: refusals_on(b, "second") == {404})
    assert versions(sessions_on(a, "first")) == {1}
    # The next change holds in it, too.
    reload(b, first=models / "newer")
    assert versions(sessions_on(a, "first")) == {2}
    for each in old:
        path = f"/v1/sessions/{each['session']}"
        assert a.client.get(path).json()["model"]["version"] == 1
        graph = a.client.get(f"{path}/graph")
        assert graph.status_code == 200
    assert change(b, "first", "unload") == (200, "")
    assert refusals_on(a, "first") == {404}
    assert predicts(a, "first") == 404
    assert a.client.get(f"/v1/sessions/{old[0]['session']}").status_code == 200


def test_who_comes_later_makes_the_changes(front: FrontEnds, models: pathlib.Path) -> None:
    first = front("later", administered(models))
    on_each_node(first)
    for name in ("first", "second"):
        assert change(first, name, "load") == (200, "")
    assert change(first, "second", "unload") == (200, "")
    ray.kill(directory_of("later"), no_restart=False)
    for told in hosts_of("later").values():
        os.kill(told["process_id"], signal.SIGKILL)
    until(lambda: not host_ids_of("later"))
    second = front("later", administered(models))
    for server in (first, second):
        assert versions(sessions_on(server, "first", 2)) == {1}
        assert refusals_on(server, "second") == {404}
        assert (predicts(server, "first"), predicts(server, "second")) == (200, 404)
    # Those that were there before the directory ended take part.
    assert change(second, "second", "load") == (200, "")
    assert predicts(first, "second") == 200
    assert versions(sessions_on(first, "second")) == {1}


def test_files_of_the_operator_are_looked_at_by_every_host(
    front: FrontEnds, models: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    config = tmp_path / "models.config"

    def configured(*names: str) -> str:
        entries = (
            f'config {{ name: "{name}" base_path: "{models / name}" model_platform: "tensorflow" }}'
            for name in names
        )
        return f"model_config_list {{ {' '.join(entries)} }}\n"

    config.write_text(configured("first"))
    polls = {"model_poll_seconds": 0.2, "model_config_file_poll_seconds": 0.2}
    server = front("files", {"model_config_file": str(config)} | polls)
    assert versions(sessions_on(server, "first")) == {1}
    made = models / "first" / ".2"
    shutil.copytree(models / "first" / "1", made)
    made.rename(models / "first" / "2")
    config.write_text(configured("first", "second"))
    until(lambda: versions(sessions_on(server, "first")) == {2})
    until(lambda: refusals_on(server, "second") == {201})


def test_the_newest_front_end_says_which_models_there_are(
    front: FrontEnds, models: pathlib.Path
) -> None:
    first = front("anew", administered(models))
    on_each_node(first)
    assert change(first, "second", "load") == (200, "")
    model = {"name": "first", "base_path": str(models / "first")}
    second = front("anew", administered(models, models=[model]))
    until(lambda: refusals_on(second, "first") == {201})
    assert refusals_on(second, "second") == {404}
    assert predicts(second, "second") == 404
    assert change(second, "second", "load") == (200, "")
    assert versions(sessions_on(first, "second")) == {1}
