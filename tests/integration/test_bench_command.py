"""`runstep bench` against a real server: each protocol, errors, headers and a signal."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from server.main import main
from tests.integration.access import OWNERS, Authority, bearer, write_keys
from tests.integration.server_process import ROOT, SECONDS, ServerProcess

FLAGS = ("--seconds", "0.3", "--warmup", "0", "--callers", "2")


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    process = ServerProcess("--config=configs/server.yaml", "--host=127.0.0.1")
    try:
        for model in ("digits", "half_plus_two", "counter"):
            process.wait_for(f"Loaded version 1 of model {model} ")
        yield process
    finally:
        process.end()


def url(server: ServerProcess, text: str) -> str:
    return text.replace("HTTP", server.http_address).replace("GRPC", server.grpc_address)


def inferences(server: ServerProcess, model: str) -> int:
    """The inferences of a model over the Open Inference Protocol so far."""
    stats = server.client.get(f"/v2/models/{model}/stats").json()
    return int(stats["model_stats"][0]["inference_count"])


@pytest.mark.parametrize(
    ("target", "flags", "title"),
    [
        ("HTTP/v1/models/half_plus_two:predict", (), "REST predict of model half_plus_two at "),
        ("HTTP/v1/models/half_plus_two/versions/1", ("--batch", "8"), "version 1 at "),
        ("HTTP", ("--model", "digits"), "REST predict of model digits at "),
        ("HTTP/v2/models/half_plus_two", (), "Open Inference Protocol's infer of model half_"),
        ("HTTP", ("--model", "digits", "--protocol", "v2"), "infer of model digits at "),
        ("GRPC/half_plus_two", (), "gRPC Predict of model half_plus_two at "),
        ("GRPC/half_plus_two/1", ("--rate", "50"), "50 calls a second, measured from the time"),
    ],
)
def test_every_protocol(
    server: ServerProcess,
    capsys: pytest.CaptureFixture[str],
    target: str,
    flags: tuple[str, ...],
    title: str,
) -> None:
    assert main(["bench", url(server, target), *FLAGS, *flags]) == 0
    out = capsys.readouterr().out
    assert title in out
    count = re.search(r"^(\d+) requests in .* 0 failed$", out, re.MULTILINE)
    assert count and int(count[1]) > 0


def test_the_server_counts_what_was_sent(
    server: ServerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    before = inferences(server, "counter")
    flags = ("--signature", "incr_counter", *FLAGS)
    assert main(["bench", url(server, "HTTP/v2/models/counter"), *flags]) == 0
    sent = re.search(r"^(\d+) requests", capsys.readouterr().out, re.MULTILINE)
    assert sent is not None
    assert (
        inferences(server, "counter") - before == int(sent[1]) + 1
    )  # the first call, which is not counted


@pytest.mark.parametrize(
    ("target", "flags", "message"),
    [
        ("HTTP/v1/models/nothing", (), "NOT_FOUND: GET /v1/models/nothing/metadata at "),
        ("HTTP/v2/models/nothing", (), "NOT_FOUND: GET /v2/models/nothing at "),
        ("GRPC/nothing", (), "NOT_FOUND: GetModelMetadata of model nothing at "),
        ("HTTP", (), "Name the model in the URL or with --model; the server has counter, digits"),
        ("HTTP/v1/models/digits", ("--signature", "s"), "has no signature 's'; it has serve, ser"),
        ("GRPC/digits", ("--signature", "s"), "has no signature 's'; it has serve, serving_def"),
    ],
)
def test_what_is_not_there(
    server: ServerProcess,
    capsys: pytest.CaptureFixture[str],
    target: str,
    flags: tuple[str, ...],
    message: str,
) -> None:
    assert main(["bench", url(server, target), *FLAGS, *flags]) == 1
    assert message in capsys.readouterr().err


def test_a_body_of_a_file_is_sent_as_it_is(
    server: ServerProcess, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    body = tmp_path / "body.json"
    target = url(server, "HTTP/v1/models/half_plus_two")
    body.write_text('{"instances": [[1.0], [2.0]]}')
    assert main(["bench", target, *FLAGS, "--json", str(body)]) == 0
    capsys.readouterr()
    body.write_text('{"instances": "wrong"}')
    assert main(["bench", target, *FLAGS, "--json", str(body)]) == 1
    err = capsys.readouterr().err
    assert "The first request failed with INVALID_ARGUMENT: " in err and "--json" not in err


def test_headers_are_sent(
    server: ServerProcess, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "headers"
    file.write_text("X-Priority: nonsense\n")
    target = url(server, "HTTP/v1/models/half_plus_two")
    code = main(["bench", target, *FLAGS, "--header", f"@{file}"])
    captured = capsys.readouterr()
    assert (code, "nonsense" in captured.err) == (1, True)


def test_ctrl_c_in_a_terminal(server: ServerProcess) -> None:
    command = [sys.executable, "-m", "server.main", "bench"]
    command += [url(server, "HTTP/v2/models/half_plus_two"), "--seconds=600", "--warmup=0"]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("Open Inference Protocol's infer of")
    assert "8 callers" in process.stdout.readline()
    before = inferences(server, "half_plus_two")
    while inferences(server, "half_plus_two") < before + 100:
        pass
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, err) == (1, "")
    assert re.search(r"^\d+ requests in .* 0 failed$", out, re.MULTILINE)
    assert "of 600 s" in out


@pytest.mark.parametrize("scheme", ["https", "grpcs"])
def test_certificates_and_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], scheme: str
) -> None:
    authority = Authority(tmp_path)
    issued = authority.issue("localhost", ip="127.0.0.1")
    settings = {
        "rest": {"host": "127.0.0.1"},
        "access": {"keys_file": write_keys(tmp_path / "keys.yaml", OWNERS)},
        "tls": {"certificate_file": issued.certificate, "key_file": issued.key},
        "models": [{"name": "m", "base_path": str(ROOT / "examples/models/half_plus_two")}],
    }
    config = tmp_path / "server.yaml"
    config.write_text(yaml.safe_dump(settings))
    headers = tmp_path / "headers"
    (line,) = bearer("alice").items()
    headers.write_text(": ".join(line))
    process = ServerProcess(f"--config={config}")
    try:
        process.wait_for("Loaded version 1 of model m ")
        ports = {"https": process.http_address, "grpcs": process.grpc_address}
        path = {"https": "/v1/models/m", "grpcs": "/m"}[scheme]
        target = f"{scheme}://localhost:{ports[scheme].rpartition(':')[2]}{path}"
        trusted = (*FLAGS, "--ca", str(authority.path), "--timeout", "20")
        assert main(["bench", target, *trusted, "--header", f"@{headers}"]) == 0
        assert " 0 failed" in capsys.readouterr().out
        assert main(["bench", target, *trusted]) == 1
        assert "UNAUTHENTICATED" in capsys.readouterr().err
        assert main(["bench", target, *FLAGS, "--timeout", "3"]) == 1
        err = capsys.readouterr().err
        assert "certificate verify failed" in err.lower().replace("_", " ") or scheme == "grpcs"
        assert err.startswith("runstep: UNAVAILABLE: ")
    finally:
        process.end()


def test_a_server_that_ends_meanwhile(capsys: pytest.CaptureFixture[str]) -> None:
    process = ServerProcess("--config=configs/server.yaml", "--host=127.0.0.1")
    try:
        process.wait_for("Loaded version 1 of model half_plus_two ")
        killer = threading.Thread(target=kill_after, args=(process, 100))
        killer.start()
        target = f"{process.http_address}/v2/models/half_plus_two"
        assert main(["bench", target, "--seconds", "3", "--warmup", "0"]) == 1
        killer.join()
    finally:
        process.end()
    out = capsys.readouterr().out
    assert re.search(r"^\d+ requests in .* [1-9]\d* failed$", out, re.MULTILINE)
    assert re.search(r"^  \d+ × UNAVAILABLE: 127\.0\.0\.1:\d+: ", out, re.MULTILINE)
    assert "latency: p50 " in out


def kill_after(process: ServerProcess, count: int) -> None:
    while inferences(process, "half_plus_two") < count:
        pass
    process.process.kill()
