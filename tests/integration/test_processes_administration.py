"""Changes of the served models hold in every process, or in none."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
from collections.abc import Iterator

import pytest

from tests.integration.server_process import ServerProcess
from tests.integration.test_processes import MODEL, afresh, config_file, wait_until, workers_of

TURNS = 8  # requests on connections of their own, so that each process responds to some


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[ServerProcess]:
    models = tmp_path / "models"
    for name in ("first", "second"):
        shutil.copytree(MODEL, models / name)
    shutil.copytree(MODEL, models / "broken")
    (models / "broken" / "1" / "saved_model.pb").write_bytes(b"no model")
    admin = {"enabled": True, "model_folders": [str(models)]}
    loading = {"max_retries": 0}
    config = config_file(tmp_path, admin=admin, model_loading=loading, models=[])
    process = ServerProcess(f"--config={config}")
    try:
        process.wait_for("Serving on")
        yield process
    finally:
        process.end()


def repository(server: ServerProcess, name: str, call: str) -> int:
    answer = afresh(server, "POST", f"/v2/repository/models/{name}/{call}", json={})
    return answer.status_code


def statuses(server: ServerProcess, name: str) -> set[int]:
    """Of predictions by several processes."""
    path = f"/v1/models/{name}:predict"
    return {afresh(server, "POST", path, json={"instances": [1]}).status_code for _ in range(TURNS)}


def test_models_are_loaded_and_unloaded_in_every_process(server: ServerProcess) -> None:
    for name in ("first", "second"):
        assert repository(server, name, "load") == 200
        assert statuses(server, name) == {200}
    assert repository(server, "first", "unload") == 200
    assert statuses(server, "first") == {404}
    assert statuses(server, "second") == {200}
    assert repository(server, "broken", "load") >= 400
    assert repository(server, "missing", "load") == 404
    assert statuses(server, "broken") == {404}
    assert statuses(server, "second") == {200}


def test_a_process_that_starts_later_has_the_changes(server: ServerProcess) -> None:
    for name in ("first", "second"):
        assert repository(server, name, "load") == 200
    assert repository(server, "first", "unload") == 200
    before = workers_of(server)
    os.kill(before[1], signal.SIGKILL)
    wait_until(lambda: server_is_whole(server, before[1]))
    assert statuses(server, "second") == {200}
    assert statuses(server, "first") == {404}
    assert repository(server, "first", "load") == 200
    assert statuses(server, "first") == {200}


def server_is_whole(server: ServerProcess, ended: int) -> bool:
    workers = workers_of(server)
    is_replaced = len(workers) == 2 and ended not in workers
    return is_replaced and afresh(server, "GET", "/readyz").status_code == 200


def test_a_broken_model_config_file_stops_no_process_that_takes_the_place_of_another(
    tmp_path: pathlib.Path,
) -> None:
    file = tmp_path / "models.config"
    file.write_text(
        f'model_config_list {{ config {{ name: "m" base_path: "{MODEL}" '
        'model_platform: "tensorflow" } }'
    )
    polled = {"model_config_file": str(file), "model_config_file_poll_seconds": 0.2}
    server = ServerProcess(f"--config={config_file(tmp_path, models=[], **polled)}")
    try:
        server.wait_for("Serving on")
        file.write_text("garbage")
        server.wait_for("Kept the models as they were")
        ended = workers_of(server)[1]
        os.kill(ended, signal.SIGKILL)
        wait_until(lambda: server_is_whole(server, ended))
        assert statuses(server, "m") == {200}
    finally:
        server.end()
