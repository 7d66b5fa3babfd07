"""TLS of the ports of front ends, and Ray's own between the processes of a cluster."""

from __future__ import annotations

import json
import os
import pathlib
import re
import secrets
import ssl
import subprocess
import sys

import grpc
import httpx
import pytest

import protos as pb
from tests.extras.ray.front_ends import SECONDS, FrontEnds
from tests.integration.access import OWNERS, Authority, bearer, write_keys
from tests.integration.server_process import ROOT, ServerProcess

RUN = {"feeds": {"serving_default_x:0": [2.0]}, "fetches": ["StatefulPartitionedCall_2:0"]}


class Client:
    """A client of a front end with TLS, with a certificate of some name."""

    def __init__(self, server: ServerProcess, authority: Authority, name: str) -> None:
        context = ssl.create_default_context(cafile=str(authority.path))
        issued = authority.issue(name)
        context.load_cert_chain(*issued)
        pair = [pathlib.Path(each).read_bytes() for each in (issued.key, issued.certificate)]
        address = re.search(r"https://[^ ]*:(\d+)", server.wait_for("HTTP listens on https"))
        assert address is not None
        url = f"https://localhost:{address[1]}"
        self.http = httpx.Client(base_url=url, verify=context, timeout=SECONDS)
        self._credentials = grpc.ssl_channel_credentials(authority.path.read_bytes(), *pair)
        self._rpc = f"localhost:{server.grpc_address.rpartition(':')[2]}"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def master(self, method: str, request: bytes) -> bytes:
        """A call of TensorFlow's master."""
        with grpc.secure_channel(self._rpc, self._credentials) as channel:
            call = channel.unary_unary(f"/tensorflow.MasterService/{method}")
            answer: bytes = call(request, timeout=SECONDS)
            return answer


def test_who_a_certificate_names_is_known_on_every_node(
    front: FrontEnds, tmp_path: pathlib.Path
) -> None:
    authority = Authority(tmp_path)
    issued = authority.issue("localhost", ip="127.0.0.1")
    alice = OWNERS["alice"] | {"certificates": ["alice.example"]}
    settings = {
        "access": {"keys_file": write_keys(tmp_path / "keys.yaml", OWNERS | {"alice": alice})},
        "tls": {
            "certificate_file": issued.certificate,
            "key_file": issued.key,
            "client_ca_file": str(authority.path),
        },
    }
    servers = front.two("tls", settings)
    with (
        Client(servers[0], authority, "alice.example") as by_certificate,
        Client(servers[1], authority, "unknown.example") as by_key,
    ):
        opened = by_certificate.http.post("/v1/sessions", json={"model": "half_plus_two"})
        assert opened.status_code == 201, opened.text
        path = opened.headers["location"]
        for client, headers in ((by_certificate, {}), (by_key, bearer("alice"))):
            answer = client.http.post(f"{path}:run", json=RUN, headers=headers)
            assert answer.json()["outputs"]["StatefulPartitionedCall_2:0"]["data"] == [3.0]
        for headers, status in (({}, 401), (bearer("bob"), 404)):
            assert by_key.http.get(path, headers=headers).status_code == status
        (listed,) = by_certificate.http.get("/v1/sessions").json()["sessions"]
        assert path.endswith(listed["session"])
        # gRPC: the master is on one node, and the identity comes with the call.
        request = pb.CreateSessionRequest().SerializeToString()
        answer = by_certificate.master("CreateSession", request)
        handle = pb.CreateSessionResponse.FromString(answer).session_handle
        mine = by_key.http.get(f"/v1/sessions/{handle}", headers=bearer("alice"))
        assert mine.status_code == 200
        with pytest.raises(grpc.RpcError) as caught:
            by_key.master("CreateSession", request)
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://localhost:{by_key.http.base_url.port}/healthz")


# Ray reads its settings of TLS when its library is loaded.
PROGRAM = """
import json, os, pathlib, sys
import tests.ray_cluster
from tests.extras.ray.front_ends import FrontEnds
from tests.integration.targets.graphs import chain
from runtime.api import OpError, SessionOptions, new_session
import numpy as np, ray, subprocess

def told(target):
    session = new_session(SessionOptions(target))
    session.create(chain())
    (value,) = session.run({"x:0": np.float32(3)}, ["n:0"])
    session.close()
    return float(value)

def refused(target):
    try:
        told(target)
    except OpError as error:
        return [error.code.name, error.message, ray.is_initialized()]

ELSEWHERE = (
    "import sys; from runtime.api import *; import tests.ray_cluster\\n"
    "try: new_session(SessionOptions(sys.argv[1]))\\n"
    "except OpError as error: print(error.code.name, error.message)\\n"
)

def elsewhere(target, **environment):
    command = [sys.executable, "-c", ELSEWHERE, target]
    environment = {**os.environ, **environment}
    return subprocess.run(command, env=environment, text=True, stdout=subprocess.PIPE).stdout

answers = {}
with tests.ray_cluster.ray_cluster() as cluster:
    address = f"ray://{cluster.address}"
    answers["resources"] = refused(f"{address}?resources.tpu=1")
    answers["plain"] = elsewhere(address, RAY_USE_TLS="0")
    answers["token"] = elsewhere(address, RAY_AUTH_TOKEN="0" * 40)
    answers["no file"] = elsewhere(address, RAY_TLS_CA_CERT="/nonexistent")
    answers["value"] = told(address)
    front = FrontEnds(cluster, pathlib.Path(sys.argv[1]))
    server = front("within")
    opened = server.client.post("/v1/sessions", json={"model": "half_plus_two"}, timeout=60)
    answers["front"] = opened.status_code
    front.end()
print(json.dumps(answers))
"""


def test_a_cluster_with_tls_and_a_token_of_its_own(tmp_path: pathlib.Path) -> None:
    authority = Authority(tmp_path)
    issued = authority.issue("localhost", ip="127.0.0.1")
    environment = {
        **os.environ,
        "RAY_USE_TLS": "1",
        "RAY_TLS_SERVER_CERT": issued.certificate,
        "RAY_TLS_SERVER_KEY": issued.key,
        "RAY_TLS_CA_CERT": str(authority.path),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(20),
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], cwd=ROOT, env=environment,
        capture_output=True, text=True, timeout=2 * SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout.splitlines()[-1])
    assert (answers["value"], answers["front"]) == (-6.0, 201)
    code, message, is_joined = answers["resources"]
    assert (code, is_joined) == ("FAILED_PRECONDITION", False)
    assert "has 1 tpu" in message
    assert answers["token"].startswith("PERMISSION_DENIED The Ray cluster at 127.0.0.1:")
    assert "refuses this program: " in answers["token"]
    assert answers["plain"].startswith("UNAVAILABLE ")
    assert "differs in RAY_USE_TLS" in answers["plain"]
    assert (
        "FAILED_PRECONDITION RAY_USE_TLS is set, and the file '/nonexistent' of RAY_TLS_CA"
        in (answers["no file"])
    )
