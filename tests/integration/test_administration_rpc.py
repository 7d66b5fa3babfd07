"""HandleReloadConfigRequest of a whole server: who may, what changes, and what never changes."""

from __future__ import annotations

import asyncio
import json
import pathlib
import re
import shutil
from typing import Any

import grpc
import numpy as np
import pytest
import yaml

import protos as pb
from server.settings import AdminSettings, load_settings
from tests.integration.access import bearer, write_keys
from tests.integration.rpc_server import (
    HALF_PLUS_TWO_MODEL,
    RpcServer,
    predict_request,
    with_rpc,
)

RELOAD = "/tensorflow.serving.ModelService/HandleReloadConfigRequest"
PREDICT = "/tensorflow.serving.PredictionService/Predict"
X = np.array([2.0], np.float32)
DENIED = grpc.StatusCode.PERMISSION_DENIED
INVALID = grpc.StatusCode.INVALID_ARGUMENT
KEPT = {"name": "half_plus_two", "base_path": "examples/models/half_plus_two"}


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder of models: `new` with versions 1 and 2, `broken` with an empty version."""
    for version in "1", "2":
        shutil.copytree("examples/models/half_plus_two/1", tmp_path / "new" / version)
    (tmp_path / "broken" / "1").mkdir(parents=True)
    (tmp_path / "nothing").mkdir()
    return tmp_path


def reload_request(*models: dict[str, Any]) -> pb.serving.ReloadConfigRequest:
    request = pb.serving.ReloadConfigRequest()
    configs = request.config.model_config_list
    configs.SetInParent()
    for model in models:
        configs.config.add(**{"model_platform": "tensorflow"} | model)
    return request


def new(folder: pathlib.Path, **fields: Any) -> dict[str, Any]:
    return {"name": "new", "base_path": str(folder / "new")} | fields


def admin(folder: pathlib.Path | str) -> dict[str, Any]:
    return {"enabled": True, "model_folders": [str(folder)]}


async def serves(server: RpcServer, *names: str) -> None:
    """Exactly these models serve."""
    assert sorted(server.rest.services.models.model_names()) == sorted(names)
    for name in names:
        assert await server.predict(name, x=X) == {"y": [3.0]}


def test_without_the_setting_nobody_may_reload(folder: pathlib.Path) -> None:
    async def scenario(server: RpcServer) -> None:
        text = "This server does not let its clients administer it: admin.enabled is false"
        await server.refused(RELOAD, reload_request(new(folder)), DENIED, text)
        await serves(server, "half_plus_two")

    with_rpc(scenario, admin={"model_folders": [str(folder)]})


def test_the_lines_of_the_migration_guide_turn_it_on(
    folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guide = pathlib.Path("docs/migration.md").read_text().replace("/models]", f"{folder}]")
    guide = guide.replace('["/models"]', json.dumps([str(folder)]))
    (line,) = re.findall(r"^admin: .*$", guide, re.MULTILINE)
    for name, value in re.findall(r"`(RUNSTEP_ADMIN__\w+)='?(.*?)'?`", guide):
        monkeypatch.setenv(name, value)
    assert load_settings(environment={}).admin == AdminSettings(**admin(folder))

    async def scenario(server: RpcServer) -> None:
        await server.bytes(RELOAD, reload_request(KEPT, new(folder)))
        await serves(server, "half_plus_two", "new")

    with_rpc(scenario, **yaml.safe_load(line))


def test_a_reload_is_declarative_and_returns_when_the_new_models_serve(
    folder: pathlib.Path,
) -> None:
    async def scenario(server: RpcServer) -> None:
        request = reload_request(KEPT, new(folder))
        answer = await server.call(RELOAD, request, pb.serving.ReloadConfigResponse)
        assert answer.HasField("status") and answer.status.error_code == pb.OK
        await serves(server, "half_plus_two", "new")
        await server.call(RELOAD, reload_request(new(folder)), pb.serving.ReloadConfigResponse)
        await serves(server, "new")
        request = predict_request("half_plus_two", x=X)
        await server.refused(PREDICT, request, grpc.StatusCode.NOT_FOUND, "Latest(half_plus_two)")
        await server.call(RELOAD, reload_request(KEPT), pb.serving.ReloadConfigResponse)
        await serves(server, "half_plus_two")

    with_rpc(scenario, admin=admin(folder))


def test_policies_and_labels_of_the_new_configuration_hold(folder: pathlib.Path) -> None:
    async def scenario(server: RpcServer) -> None:
        model = new(folder, version_labels={"old": 1, "stable": 2})
        model["model_version_policy"] = {"all": {}}
        await server.call(RELOAD, reload_request(model), pb.serving.ReloadConfigResponse)
        request = predict_request("new", x=X)
        for label, version in (("old", 1), ("stable", 2)):
            request.model_spec.version_label = label
            answer = await server.call(PREDICT, request, pb.serving.PredictResponse)
            assert answer.model_spec.version.value == version
        model["model_version_policy"] = {"specific": {"versions": [1]}}
        model["version_labels"] = {"next": 3}
        await server.refused(
            RELOAD, reload_request(model), grpc.StatusCode.FAILED_PRECONDITION,
            "Request to assign label to version 3 of model new, "
            "which is not currently available for inference",
        )  # fmt: skip
        request.model_spec.version_label = "stable"  # as before
        answer = await server.call(PREDICT, request, pb.serving.PredictResponse)
        assert answer.model_spec.version.value == 2

    with_rpc(scenario, admin=admin(folder))


def test_a_reload_that_fails_leaves_what_served(folder: pathlib.Path) -> None:
    broken = {"name": "broken", "base_path": str(folder / "broken")}

    async def scenario(server: RpcServer) -> None:
        not_found = grpc.StatusCode.NOT_FOUND
        wrong = [
            (
                reload_request(new(folder), broken),
                grpc.StatusCode.UNKNOWN,
                "1 model(s) did not become available: "
                "{{{name: broken version: 1} due to error: NOT_FOUND: ",
            ),
            (
                reload_request(
                    new(folder), {"name": "nothing", "base_path": str(folder / "nothing")}
                ),
                not_found,
                "No versions of servable nothing found under base path",
            ),
            (
                reload_request({"name": "x", "base_path": str(folder / "no such folder")}),
                INVALID,
                "Could not find base path",
            ),
            (
                reload_request(new(folder), new(folder)),
                INVALID,
                "Illegal to list model new multiple times in config list",
            ),
            (
                reload_request(new(folder, model_platform="pytorch")),
                INVALID,
                "Model new requests unsupported platform pytorch",
            ),
            (
                pb.serving.ReloadConfigRequest(),
                INVALID,
                "ServerModelConfig type not supported by HandleReloadConfigRequest."
                " Only ModelConfigList is currently supported",
            ),
        ]
        for request, code, text in wrong:
            await server.refused(RELOAD, request, code, text)
            await serves(server, "half_plus_two")
        await server.call(
            RELOAD, reload_request(KEPT, new(folder)), pb.serving.ReloadConfigResponse
        )
        await serves(server, "half_plus_two", "new")

    with_rpc(scenario, admin=admin(folder))


def test_base_paths_elsewhere_are_refused(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (folder / "inside").mkdir()
    (folder / "inside" / "link").symlink_to(folder / "new")

    async def scenario(server: RpcServer) -> None:
        inside = folder / "inside"
        for path in (folder / "new", inside / ".." / "new", inside / "link", "/etc"):
            request = reload_request(KEPT, {"name": "x", "base_path": str(path)})
            text = "The base path of model x is not under a folder of admin.model_folders"
            await server.refused(RELOAD, request, DENIED, text)
        await serves(server, "half_plus_two")

    with_rpc(scenario, admin=admin(folder / "inside"))


def test_a_reload_that_is_given_up_is_undone(folder: pathlib.Path) -> None:
    async def scenario(server: RpcServer) -> None:
        models = server.rest.services.models
        tasks: list[Any] = []
        models._load_pool = type("Held", (), {"schedule": lambda _, task: tasks.append(task)})()
        call = asyncio.create_task(server.bytes(RELOAD, reload_request(KEPT, new(folder))))
        while not tasks:
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        code = grpc.StatusCode.DEADLINE_EXCEEDED
        request = reload_request(KEPT, new(folder))
        await server.refused(RELOAD, request, code, "", timeout=0.5)
        await asyncio.to_thread(
            models.wait_until, lambda: models.model_names() == ["half_plus_two"], 30
        )
        await serves(server, "half_plus_two")

    with_rpc(scenario, admin=admin(folder))


def test_with_keys_a_reload_requires_the_role_admin(folder: pathlib.Path) -> None:
    keys = write_keys(folder / "keys.yaml")

    async def scenario(server: RpcServer) -> None:
        request = reload_request(KEPT, new(folder))
        code = grpc.StatusCode.UNAUTHENTICATED
        await server.refused(RELOAD, request, code, "requires an API key")
        alice = tuple(bearer("alice").items())
        text = "This call requires the role admin"
        await server.refused(RELOAD, request, DENIED, text, metadata=alice)
        root = tuple(bearer("root").items())
        await server.bytes(RELOAD, request, metadata=root)
        assert sorted(server.rest.services.models.model_names()) == ["half_plus_two", "new"]

    with_rpc(scenario, admin=admin(folder), access={"keys_file": keys})


def test_the_answer_has_the_increase_of_metrics(folder: pathlib.Path) -> None:
    async def scenario(server: RpcServer) -> None:
        await server.predict("half_plus_two", x=X)
        request = reload_request(KEPT)
        names = ["/tensorflow/serving/request_count", "no_such_metric"]
        request.metric_names.extend(names)
        answer = await server.call(RELOAD, request, pb.serving.ReloadConfigResponse)
        increases = {each.name: each.int64_value_increase for each in answer.metric}
        assert increases == dict.fromkeys(names, 0)

    with_rpc(scenario, admin=admin(folder), models=[HALF_PLUS_TWO_MODEL])
