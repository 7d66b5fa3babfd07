"""A server on an IPv6 address: HTTP and every gRPC port, with one process and with two."""

from __future__ import annotations

import contextlib
import json
import pathlib
import re
import socket
import subprocess
import sys

import grpc
import httpx
import numpy as np
import pytest

import protos as pb
from runtime.api import tensor_from_proto, tensor_to_proto
from tests.integration.server_process import ROOT, SECONDS, ServerProcess

HOST = "::1"
MODEL = ROOT / "examples" / "models" / "half_plus_two"


def has_ipv6() -> bool:
    with contextlib.suppress(OSError), socket.create_server((HOST, 0), family=socket.AF_INET6):
        return True
    return False


pytestmark = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")


def free_port() -> int:
    with socket.create_server((HOST, 0), family=socket.AF_INET6) as free:
        return int(free.getsockname()[1])


def predicted(port: str | int) -> float:
    request = pb.serving.PredictRequest()
    request.model_spec.name = "half_plus_two"
    request.inputs["x"].CopyFrom(tensor_to_proto(np.float32([3])))
    with grpc.insecure_channel(f"[{HOST}]:{port}") as channel:
        call = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
        data = call(request.SerializeToString(), timeout=SECONDS, wait_for_ready=True)
    (found,) = pb.serving.PredictResponse.FromString(data).outputs.values()
    return float(tensor_from_proto(found)[0])


def is_tensorflow_served(port: int) -> bool:
    request = pb.ListDevicesRequest().SerializeToString()
    with grpc.insecure_channel(f"[{HOST}]:{port}") as channel:
        call = channel.unary_unary("/tensorflow.MasterService/ListDevices")
        data = call(request, timeout=SECONDS, wait_for_ready=True)
    return bool(pb.ListDevicesResponse.FromString(data).local_device)


@pytest.mark.parametrize(("host", "processes"), [(HOST, 1), (HOST, 2), ("::", 1), ("::", 2)])
def test_every_port_has_the_address(host: str, processes: int, tmp_path: pathlib.Path) -> None:
    tensorflow_port = free_port()
    path = tmp_path / "server.yaml"
    path.write_text(
        json.dumps(
            {
                "processes": processes,
                "models": [{"name": "half_plus_two", "base_path": str(MODEL)}],
                "rest": {"host": host},
                "grpc": {
                    "background_port": "free",
                    "tensorflow_host": host,
                    "tensorflow_port": tensorflow_port,
                },
            }
        )
    )
    server = ServerProcess(f"--config={path}")
    try:
        line = server.wait_for("Serving on")
        found = re.search(r"http://\[([:1]+)\]:(\d+) and grpc://\[([:1]+)\]:(\d+)\b", line)
        assert found is not None, line
        assert (found[1], found[3]) == (host, host)
        address = f"http://[{HOST}]:{found[2]}/v1/models/half_plus_two:predict"
        answer = httpx.post(address, json={"instances": [3]}, timeout=SECONDS)
        assert answer.json() == {"predictions": [3.5]}
        if host == "::":
            for port in (found[2], found[4], str(tensorflow_port)):  # of IPv4 too
                socket.create_connection(("127.0.0.1", int(port)), SECONDS).close()
        assert predicted(found[4]) == 3.5
        assert is_tensorflow_served(tensorflow_port)
        low = server.wait_for("gRPC of low priority has port").split()[-1]
        assert predicted(low) == 3.5
    finally:
        server.end()


@pytest.mark.parametrize(
    ("front", "flag", "processes"),
    [("HTTP", "rest_api_port", 1), ("HTTP", "rest_api_port", 2), ("gRPC", "port", 2)],
)
def test_a_taken_port_is_named_with_its_address(front: str, flag: str, processes: int) -> None:
    other = "port" if flag == "rest_api_port" else "rest_api_port"
    with socket.create_server((HOST, 0), family=socket.AF_INET6) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "server.main", "serve", f"--processes={processes}"]
        result = subprocess.run(
            [*command, f"--host={HOST}", f"--{flag}={port}", f"--{other}=0"],
            cwd=ROOT, capture_output=True, text=True, timeout=SECONDS,
        )  # fmt: skip
    assert result.returncode == 1
    assert (
        f"Cannot listen on [{HOST}]:{port} for {front}: Address already in use\n" in result.stderr
    )
