"""What `runstep serve` and `runstep deploy ray` can't have is said at once, and nothing is left.

One program runs several commands, one after the other: each must return by itself.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

import grpc
import pytest
import yaml

from tests.extras.ray.traces import listening, new_traces, traces
from tests.integration.server_process import ROOT
from tests.ray_cluster import RayCluster

SECONDS = 10
HALF_PLUS_TWO = {"name": "half_plus_two", "base_path": "examples/models/half_plus_two"}

PROGRAM = """
import contextlib, io, json, sys, time
import tests.ray_cluster
import ray
from server.main import main
answers = []
for command in json.loads(sys.argv[1]):
    text = io.StringIO()
    began = time.monotonic()
    with contextlib.redirect_stderr(text):
        code = main(command)
    seconds = time.monotonic() - began
    answers.append([code, text.getvalue(), seconds, ray.is_initialized()])
print(json.dumps(answers))
"""


class Starts:
    """Commands whose settings are wrong."""

    def __init__(self, cluster: RayCluster, folder: pathlib.Path, temporary: pathlib.Path) -> None:
        self._cluster = cluster
        self._folder = folder
        self._temporary = temporary
        self._commands: list[list[str]] = []
        self._expected: list[str] = []

    def add(self, command: str, sentence: str, **settings: Any) -> None:
        """Add `serve` or `deploy` with settings; those of the section `ray` have an address."""
        ray = {"address": self._cluster.address} | settings.pop("ray", {})
        rest = {"host": "127.0.0.1", "port": "free" if command == "serve" else 1}
        given = {"models": [HALF_PLUS_TWO], "ray": ray, "rest": rest, "grpc": {"port": 0}}
        if command == "serve":
            given["placement"] = "ray"
        file = self._folder / f"{len(self._commands)}.yaml"
        file.write_text(yaml.safe_dump(given | settings))
        arguments = ["serve"] if command == "serve" else ["deploy", "ray"]
        self._commands.append([*arguments, "--config", str(file)])
        self._expected.append(sentence)

    def both(self, sentence: str, **ray: Any) -> None:
        """Add both commands with settings of the section `ray`."""
        for command in ("serve", "deploy"):
            self.add(command, sentence, ray=ray)

    def run(self, **environment: str) -> None:
        """Run the commands, and check what each says and leaves."""
        before = traces(self._cluster)
        own = {"RAY_TMPDIR": tempfile.gettempdir(), "TMPDIR": str(self._temporary)}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, json.dumps(self._commands)],
            cwd=ROOT, capture_output=True, text=True, timeout=100, check=False,
            env={**os.environ, **own, **environment},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        answers = json.loads(done.stdout)
        for (code, text, seconds, is_joined), sentence in zip(answers, self._expected, strict=True):
            assert code == 1, text
            assert sentence in text
            # Wrong settings have a line each.
            assert text.startswith("runstep: ") and text.count("\n") <= 2, text
            assert seconds < SECONDS
            assert not is_joined
        assert new_traces(before, self._cluster) == {}
        assert not list(self._temporary.glob("runstep-*"))


@pytest.fixture
def starts(one_node: RayCluster, tmp_path: pathlib.Path, temporary: pathlib.Path) -> Starts:
    return Starts(one_node, tmp_path, temporary)


def test_addresses(starts: Starts) -> None:
    starts.both("127.0.0.1:1 can't be reached: Connection refused", address="127.0.0.1:1")
    starts.both("10001 is the port of Ray Client", address="127.0.0.1:10001")
    starts.both("no-such-host.invalid:6379 can't be reached", address="no-such-host.invalid:6379")
    starts.both("expected ray://auto or ray://HOST:PORT", address="here")
    for options in ("label.zone=a", "isolation=actor", "namespace=x"):
        sentence = (
            f"ray.address is 'auto?{options}': expected auto or HOST:PORT without options; which "
            f"nodes take sessions is in ray.nodes (address: auto, nodes: {options})"
        )
        starts.both(sentence, address=f"auto?{options}")
    with (
        listening(None) as silent,
        listening(b"HTTP/1.1 400 Bad Request\r\n\r\n") as web,
        concurrent.futures.ThreadPoolExecutor(1) as threads,
    ):
        server = grpc.server(threads)
        other = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        for address in (silent, web, other):
            starts.both(f"ray://{address} is not the GCS of a Ray cluster", address=address)
        starts.run()
        server.stop(None)


def test_no_cluster_is_found(starts: Starts, tmp_path: pathlib.Path) -> None:
    starts.both("ray://127.0.0.1:1 can't be reached", address="auto")
    starts.run(RAY_ADDRESS="127.0.0.1:1", RAY_TMPDIR=str(tmp_path))


@pytest.mark.parametrize(
    ("key", "version", "sentence"),
    [
        ("ray_version", "1.13.0", "runs Ray 1.13.0, this program Ray "),
        ("python_version", "3.8.1", "runs Python 3.8.1, this program Python 3."),
    ],
)
def test_other_versions(
    one_node: RayCluster, starts: Starts, key: str, version: str, sentence: str
) -> None:
    starts.both(sentence)
    with one_node.claiming(**{key: version}):
        starts.run()


def test_what_no_node_has(starts: Starts) -> None:
    for nodes, sentence in (
        (
            "resources.tpu=4",
            "No node of the Ray cluster has 4 tpu; the nodes have 127.0.0.1: 4 CPU",
        ),
        ("label.zone=b", "No node of the Ray cluster has label zone=b"),
        ("num_cpus=64", "No node of the Ray cluster has 64 CPU"),
        ("node=10.9.9.9", "The Ray cluster has no node '10.9.9.9'; its nodes are 127.0.0.1 ("),
        ("cpus=4", "ray.nodes is 'cpus=4': unknown option cpus; the options are"),
        ("isolation=actor", "sessions of a server have no actors of their own"),
    ):
        starts.both(sentence, nodes=nodes)
    for serve, sentence in (
        ({"cpus": 5}, "Model half_plus_two: No node of the Ray cluster has 5 CPU"),
        ({"replicas": 5}, "The replicas of all models take 5 CPUs of Ray's account; the nodes of"),
        ({"replicas": 0}, "replicas must be at least 1, got 0"),
    ):
        starts.add("deploy", sentence, ray={"serve": serve})
    starts.run()


def test_what_an_application_can_not_have(starts: Starts) -> None:
    for settings, sentence in (
        ({"models": []}, "needs a model: expected a name and a base_path"),
        ({"processes": 2}, "can't have processes above 1"),
        ({"rest": {"port": "free"}}, "can't have rest.port 0 or free"),
        ({"grpc": {"port": "free"}}, "can't have grpc.port free"),
        ({"grpc": {"socket_path": "/tmp/x"}}, "can't have grpc.socket_path"),
        ({"model_config_file": "models.config"}, "can't have model_config_file"),
        ({"tls": {"certificate_file": "/nonexistent", "key_file": "/nonexistent"}},
         "tls.certificate_file, key_file or client_ca_file is wrong"),
    ):  # fmt: skip
        starts.add("deploy", sentence, **settings)
    starts.add("serve", "processes", processes=2)
    starts.run()
