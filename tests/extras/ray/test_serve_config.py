"""The application that Ray Serve builds from its own configuration, as KubeRay has it do."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import yaml

from tests.extras.ray.deployments import SECONDS, Commands, free_port, until
from tests.integration.server_process import ROOT
from tests.ray_cluster import RayCluster

MANIFEST = ROOT / "configs" / "kuberay" / "ray_service.yaml"
MODEL = f"{ROOT}/examples/models/half_plus_two"
PREDICT = "/v1/models/resnet:predict"
LABELLED = "/v1/models/resnet/labels/stable:predict"
REPLICA = "model_resnet"

# What `serve deploy` and KubeRay send to Ray's dashboard ends in `deploy_apps`.
APPLY = """
import json, sys, time
import ray, yaml
from ray import serve
from ray.serve.schema import ServeDeploySchema
import tests.ray_cluster
config = ServeDeploySchema(**yaml.safe_load(open(sys.argv[2])))
ray.init(address=sys.argv[1], log_to_driver=False)
serve.start(proxy_location=config.proxy_location, http_options=config.http_options.model_dump())
serve.context._get_global_client().deploy_apps(config)
while (told := serve.status().applications["runstep"]).status in ("NOT_STARTED", "DEPLOYING"):
    time.sleep(0.1)
print(json.dumps([told.status, told.message]))
"""
# A process of its own, because Ray Serve warns when it is imported.
BUILD = """
import json, sys
from ray.serve.exceptions import RayServeException
from server.ray_serve.builder import application
told = []
for args in json.loads(sys.argv[1]):
    try:
        application(args)
        told.append("")
    except RayServeException as error:
        told.append(str(error))
print(json.dumps(told))
"""


def program(text: str, *arguments: str, **environment: str) -> Any:
    """What a program prints as JSON in its last line."""
    done = subprocess.run(
        [sys.executable, "-c", text, *arguments], cwd=ROOT, capture_output=True, text=True,
        timeout=SECONDS, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


class Applied:
    """The configuration of the manifest, for a cluster of one small node."""

    def __init__(self, cluster: RayCluster, file: pathlib.Path) -> None:
        self.cluster, self._file = cluster, file
        self.config = yaml.safe_load(yaml.safe_load(MANIFEST.read_text())["spec"]["serveConfigV2"])
        self.config["http_options"] = {"host": "127.0.0.1", "port": free_port()}
        (self.application,) = self.config["applications"]
        self.args = self.application["args"]
        self.args["models"] = [{"name": "resnet", "base_path": MODEL}]
        self.args["ray"]["serve"] |= {"cpus": 0.5, "replicas": 1, "fronts": 1}
        address = f"http://127.0.0.1:{self.config['http_options']['port']}"
        self.client = httpx.Client(base_url=address, timeout=SECONDS)

    def apply(self) -> list[str]:
        """Give Ray Serve the configuration; the status to which that leads, and its message."""
        self._file.write_text(yaml.safe_dump(self.config))
        status: list[str] = program(APPLY, self.cluster.address, str(self._file))
        return status

    def answers(self) -> bool:
        """Whether a prediction is answered, which must be right."""
        try:
            answer = self.client.post(PREDICT, json={"instances": [1.0, 5.0]})
        except httpx.TransportError:
            return False
        if answer.status_code != 200:
            return False
        assert answer.json() == {"predictions": [2.5, 4.5]}
        return True


@pytest.fixture(scope="module")
def applied(
    one_node: RayCluster, commands: Commands, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Applied]:
    made = Applied(one_node, tmp_path_factory.mktemp("serve") / "serve.yaml")
    assert made.apply() == ["RUNNING", ""]
    yield made
    made.client.close()
    done = commands("--address", one_node.address, "--remove", "--name", "runstep")
    assert done.returncode == 0, done.stderr
    until(lambda: one_node.num_actors() == 0)


def test_the_manifest_s_application_serves(applied: Applied) -> None:
    until(applied.answers)  # the proxy may learn of it a moment later
    assert applied.client.get("/readyz").status_code == 200
    assert applied.client.get("/-/healthz").status_code == 200  # what KubeRay asks


def test_its_sessions_are_on_the_nodes(applied: Applied) -> None:
    opened = applied.client.post("/v1/sessions", json={"model": "resnet"})
    assert opened.status_code == 201, opened.text
    path = f"/v1/sessions/{opened.json()['session']}"
    body = {"feeds": {"serving_default_x:0": [2.0]}, "fetches": ["StatefulPartitionedCall_2:0"]}
    answer = applied.client.post(f"{path}:run", json=body).json()
    assert answer["outputs"]["StatefulPartitionedCall_2:0"]["data"] == [3.0]
    assert applied.client.delete(path).status_code == 200


def test_the_number_of_replicas_changes_in_place(applied: Applied) -> None:
    before = applied.cluster.actors(REPLICA)
    applied.application["deployments"].append({"name": REPLICA, "num_replicas": 2})
    assert applied.apply() == ["RUNNING", ""]
    assert len(applied.cluster.actors(REPLICA)) == 2
    assert before.items() <= applied.cluster.actors(REPLICA).items()
    assert applied.answers()


def test_changed_args_replace_the_replicas(applied: Applied) -> None:
    before = applied.cluster.actors(REPLICA).keys()
    del applied.application["deployments"][1:]
    applied.args["models"][0]["version_labels"] = {"stable": 1}
    assert applied.apply() == ["RUNNING", ""]
    assert not before & applied.cluster.actors(REPLICA).keys()
    answer = applied.client.post(LABELLED, json={"instances": [1.0]})
    assert answer.json() == {"predictions": [2.5]}


def test_wrong_args_are_a_sentence_in_the_status_and_change_nothing(applied: Applied) -> None:
    right = dict(applied.args)
    applied.args["processes"] = 2
    status, message = applied.apply()
    assert status == "DEPLOY_FAILED"
    assert message.endswith(
        ":\nAn application of Ray Serve can't have processes above 1: ray.serve.replicas takes its "
        "place"
    )
    assert applied.answers()
    del applied.args["processes"]
    assert applied.args == right


def test_wrong_args_are_refused_and_the_environment_does_not_count() -> None:
    model = {"name": "resnet", "base_path": MODEL}
    wrong: list[dict[str, Any]] = [
        {"model": []},
        {"models": []},
        {"models": [model | {"base_path": "models/resnet"}]},
        {"models": [model]},
    ]
    first, *others = program(BUILD, json.dumps(wrong), RUNSTEP_PROCESSES="2")
    assert "model: There is no such key (did you mean models?), got [] (args)" in first
    assert others == [
        "An application of Ray Serve needs a model: expected a name and a base_path in models, got "
        "an empty list",
        "Model resnet: base_path must be absolute, because replicas run in other folders, got "
        "'models/resnet'",
        "",
    ]
