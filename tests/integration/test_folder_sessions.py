"""Sessions on SavedModels in the folders of `sessions.model_folders`, which are not served."""

from __future__ import annotations

import asyncio
import os
import pathlib
import shutil
from typing import Any

import numpy as np
import pytest

from runtime.errors import InvalidArgumentError
from server.app import make_services
from server.settings import Settings
from tests.integration.access import bearer, write_keys
from tests.integration.rest_server import RestServer, check_error, with_server

MODELS = pathlib.Path(__file__).parents[1] / "fixtures" / "saved_models"
READ = {"fetches": ["get_counter:0"]}
INCREMENT = {"fetches": ["AssignAdd:0"]}


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder for models with `counter`."""
    shutil.copytree(MODELS / "counter", tmp_path / "models" / "counter")
    return tmp_path / "models"


def settings(*folders: pathlib.Path, **more: Any) -> dict[str, Any]:
    return {"models": (), "sessions": {"model_folders": [str(each) for each in folders], **more}}


async def value(server: RestServer, session: str, body: object) -> Any:
    answer = await server.post(f"{session}:run", body)
    assert answer.status_code == 200, answer.text
    (output,) = answer.json()["outputs"].values()
    return output["data"]


def test_a_session_is_restored_and_initialized_and_keeps_its_own_state(
    folder: pathlib.Path,
) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}

    async def scenario(server: RestServer) -> None:
        one = await server.create({"export_dir": str(folder / "counter"), "name": "mine"})
        two = await server.create({"export_dir": "counter", "tags": ["serve"]})  # relative
        start = await value(server, one, READ)
        assert await value(server, one, INCREMENT) == start + 1
        assert await value(server, one, READ) == start + 1
        assert await value(server, two, READ) == start
        described = (await server.client.get(one)).json()
        assert described["model"] == {
            "export_dir": str(folder / "counter"),
            "tags": ["serve"],
        }
        assert (described["shared_weights"], described["name"]) == (False, "mine")
        assert (await server.client.get("/v1/models")).json()["models"] == []
        page = (await server.client.get("/monitoring/prometheus/metrics")).text
        counted = f'load_attempt_count{{model_path="{folder / "counter"}",status="success"}} 2'
        assert f":tensorflow:cc:saved_model:{counted}\n" in page

    with_server(scenario, **settings(folder))
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_weights_and_assets_are_read_and_count_as_the_session_s(tmp_path: pathlib.Path) -> None:
    async def scenario(server: RestServer) -> None:
        session = await server.create({"export_dir": str(MODELS / "mlp_small")})
        described = (await server.client.get(session)).json()
        assert described["bytes_held"] > 1000
        graph = (await server.client.get(f"{session}/graph")).json()
        assert graph["graph_def"]
        table = await server.create({"export_dir": str(MODELS / "asset_table")})
        assert (await server.client.get(table)).json()["state"] == "IDLE"

    with_server(scenario, **settings(MODELS))


def refusal(name: object) -> str:
    return f"{str(name)!r:.200} is not under a folder of sessions.model_folders"


def links(folder: pathlib.Path) -> dict[str, pathlib.Path]:
    """Paths that lead out of the folder, by what leads."""
    outside = folder.parent / "outside"
    shutil.copytree(MODELS / "counter", outside)
    (folder / "link").symlink_to(outside)
    (folder / "of_files").mkdir()
    (folder / "of_files" / "saved_model.pb").symlink_to(outside / "saved_model.pb")
    (folder.parent / "models_too").mkdir()
    return {
        "absolute": outside,
        "up": folder / ".." / "outside",
        "relative": pathlib.Path("../outside"),
        "link": folder / "link",
        "relative link": pathlib.Path("link"),
        "link of a file": folder / "of_files",
        "nothing there": pathlib.Path("/nonexistent"),
        "the same beginning": folder.parent / "models_too",
        "of the system": pathlib.Path("/etc"),
        "root": pathlib.Path("/"),
    }


def test_no_path_leads_out_of_the_folders(folder: pathlib.Path) -> None:
    paths = links(folder)

    async def scenario(server: RestServer) -> None:
        for path in paths.values():
            answer = await server.post("/v1/sessions", {"export_dir": str(path)})
            shown = "[path]" if str(path).startswith(f"{folder}/") else path
            check_error(answer, 403, "PERMISSION_DENIED", refusal(shown))
        for text in ("", "counter\0"):
            answer = await server.post("/v1/sessions", {"export_dir": text})
            check_error(answer, 403, "PERMISSION_DENIED", refusal(text))
        listed = (await server.client.get("/v1/sessions")).json()
        assert listed["sessions"] == []

    with_server(scenario, **settings(folder))


def test_variables_that_are_links_out_of_the_model_are_not_read(folder: pathlib.Path) -> None:
    variables = folder / "counter" / "variables"
    shutil.move(variables, folder.parent / "elsewhere")
    variables.symlink_to(folder.parent / "elsewhere")

    async def scenario(server: RestServer) -> None:
        answer = await server.post("/v1/sessions", {"export_dir": "counter"})
        check_error(answer, 403, "PERMISSION_DENIED", "may not read [path]")
        assert str(folder) not in answer.text

    with_server(scenario, **settings(folder))


def test_a_link_within_the_folders_is_followed(folder: pathlib.Path) -> None:
    (folder / "current").symlink_to(folder / "counter")
    other = folder.parent / "also"
    other.mkdir()
    os.symlink(folder / "counter", other / "elsewhere")

    async def scenario(server: RestServer) -> None:
        for name in ("current", "elsewhere"):
            assert await server.create({"export_dir": name})

    with_server(scenario, **settings(other, folder))


WRONG = [
    ({"export_dir": "nope"}, 404, "NOT_FOUND", "There is no folder 'nope'"),
    ({"export_dir": "empty"}, 404, "NOT_FOUND", "Could not find SavedModel .pb or .pbtxt"),
    ({"export_dir": "counter", "tags": ["train"]}, 404, "NOT_FOUND", "train"),
    ({"export_dir": "counter", "tags": []}, 404, "NOT_FOUND", "tags"),
    ({"export_dir": "broken"}, 400, "OUT_OF_RANGE", "can't parse [path] as a binary SavedModel"),
    ({"export_dir": "counter", "model": "m"}, 400, "INVALID_ARGUMENT",
     "Expected at most one of model, export_dir, graph_def, meta_graph_def; got model, export_dir"),
    ({"export_dir": "counter", "version": 1}, 400, "INVALID_ARGUMENT", "version needs a model"),
    ({"export_dir": "counter", "label": "l"}, 400, "INVALID_ARGUMENT", "label needs a model"),
    ({"export_dir": 7}, 400, "INVALID_ARGUMENT", "export_dir: Input should be a valid string"),
    ({"export_dir": "counter", "tags": "serve"}, 400, "INVALID_ARGUMENT", "tags"),
    ({"tags": ["serve"]}, 400, "INVALID_ARGUMENT", "tags needs a model"),
    ({"export_dir": "counter", "lease_seconds": -1}, 400, "INVALID_ARGUMENT", "lease_seconds"),
]  # fmt: skip


def test_what_is_wrong_is_said_and_leaves_no_session(folder: pathlib.Path) -> None:
    (folder / "empty").mkdir()
    (folder / "broken").mkdir()
    (folder / "broken" / "saved_model.pb").write_bytes(b"\xff\xff")

    async def scenario(server: RestServer) -> None:
        for body, status, code, message in WRONG:
            answer = await server.post("/v1/sessions", body)
            check_error(answer, status, code, message)
        assert (await server.client.get("/v1/sessions")).json()["sessions"] == []

    with_server(scenario, **settings(folder))


def test_without_folders_there_are_no_such_sessions() -> None:
    async def scenario(server: RestServer) -> None:
        answer = await server.post("/v1/sessions", {"export_dir": str(MODELS / "counter")})
        check_error(answer, 403, "PERMISSION_DENIED", "sessions.model_folders is empty")

    with_server(scenario, models=())


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ({"max_graph_nodes": 3}, "The graph would have 36 nodes"),
        ({"max_session_bytes": 2000}, "the session has 2000 left (sessions.max_session_bytes)"),
    ],
)
def test_the_limits_of_sessions_hold(
    folder: pathlib.Path, limit: dict[str, int], message: str
) -> None:
    async def scenario(server: RestServer) -> None:
        answer = await server.post("/v1/sessions", {"export_dir": "counter"})
        check_error(answer, 429, "RESOURCE_EXHAUSTED", message)

    with_server(scenario, **settings(folder, **limit))


def test_steps_may_not_write_the_model(folder: pathlib.Path) -> None:
    target = folder / "counter" / "written"

    async def scenario(server: RestServer) -> None:
        session = await server.create({"export_dir": "counter"})
        body = {
            "feeds": {"save/Const:0": str(target)},
            "fetches": ["save/control_dependency:0"],
        }
        answer = await server.post(f"{session}:run", body)
        check_error(answer, 403, "PERMISSION_DENIED", "may not write")

    with_server(scenario, **settings(folder))
    assert not list(folder.rglob("written*"))


@pytest.mark.parametrize("allowed", ["models", "models/counter", "."])
def test_no_folder_may_be_read_as_a_model_and_written(folder: pathlib.Path, allowed: str) -> None:
    paths = {"model_folders": (str(folder),), "allowed_paths": (str(folder.parent / allowed),)}
    with pytest.raises(InvalidArgumentError, match="no folder may be in both"):
        make_services(Settings(models=(), sessions=paths))


def test_with_keys_the_role_sessions_suffices_even_for_who_brings_no_graphs(
    folder: pathlib.Path,
) -> None:
    keys = write_keys(folder.parent / "keys.yaml")

    async def scenario(server: RestServer) -> None:
        body = {"export_dir": "counter"}
        answer = await server.post("/v1/sessions", body)
        check_error(answer, 401, "UNAUTHENTICATED", "requires an API key")
        answer = await server.post("/v1/sessions", body, headers=bearer("reader"))
        check_error(answer, 403, "PERMISSION_DENIED", "requires the role sessions")
        answer = await server.post("/v1/sessions", body, headers=bearer("alice"))
        assert answer.status_code == 201, answer.text

    with_server(
        scenario,
        access={"keys_file": str(keys)},
        **settings(folder, graphs="none"),
    )


def test_callers_at_once_have_sessions_of_their_own(folder: pathlib.Path) -> None:
    async def scenario(server: RestServer) -> None:
        sessions = await asyncio.gather(
            *(server.create({"export_dir": "counter"}) for _ in range(8))
        )
        counts = await asyncio.gather(*(value(server, each, INCREMENT) for each in sessions))
        assert len(set(sessions)) == 8
        assert np.unique(counts).size == 1

    with_server(scenario, **settings(folder))
