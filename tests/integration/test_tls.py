"""TLS and client certificates on both ports, on a real process."""

from __future__ import annotations

import contextlib
import pathlib
import re
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import grpc
import httpx
import pytest
import yaml

import protos as pb
from tests.integration.access import OWNERS, Authority, bearer, write_keys
from tests.integration.rest_server import HALF_PLUS_TWO
from tests.integration.server_process import SECONDS, ServerProcess


@pytest.fixture
def authority(tmp_path: pathlib.Path) -> Authority:
    return Authority(tmp_path)


class TlsServer:
    """A process whose ports have TLS."""

    def __init__(
        self,
        folder: pathlib.Path,
        authority: Authority,
        rest: dict[str, Any] | None = None,
        processes: int = 1,
        **tls: Any,
    ) -> None:
        issued = authority.issue("localhost", ip="127.0.0.1")
        self.authority = authority
        alice = OWNERS["alice"] | {"certificates": ["alice.example"]}
        settings = {
            "processes": processes,
            "rest": {"host": "127.0.0.1", **(rest or {})},
            "access": {"keys_file": write_keys(folder / "keys.yaml", OWNERS | {"alice": alice})},
            "tls": {"certificate_file": issued.certificate, "key_file": issued.key, **tls},
        }
        config = folder / "server.yaml"
        config.write_text(yaml.safe_dump(settings))
        self.process = ServerProcess(f"--config={config}")
        address = re.search(r"https://[^ ]*:(\d+)", self.process.wait_for("HTTP listens on https"))
        assert address is not None
        self.port = int(address[1])

    def client(self, name: str | None = None) -> httpx.Client:
        """A client with a certificate of that name."""
        context = ssl.create_default_context(cafile=str(self.authority.path))
        if name is not None:
            context.load_cert_chain(*self.authority.issue(name))
        return httpx.Client(base_url=f"https://localhost:{self.port}", verify=context)

    def list_devices(
        self, name: str | None = None, headers: dict[str, str] | None = None
    ) -> pb.ListDevicesResponse:
        """A gRPC call with a certificate of that name."""
        port = self.process.grpc_address.rpartition(":")[2]
        pair: tuple[bytes | None, bytes | None] = (None, None)
        if name is not None:
            issued = self.authority.issue(name)
            pair = (pathlib.Path(issued.key).read_bytes(),
                    pathlib.Path(issued.certificate).read_bytes())  # fmt: skip
        credentials = grpc.ssl_channel_credentials(self.authority.path.read_bytes(), *pair)
        with grpc.secure_channel(f"localhost:{port}", credentials) as channel:
            method = channel.unary_unary("/tensorflow.MasterService/ListDevices")
            answer = method(b"", timeout=SECONDS, metadata=tuple((headers or {}).items()))
        return pb.ListDevicesResponse.FromString(answer)

    def serial(self) -> int:
        """The serial number of the certificate that new connections get."""
        context = ssl.create_default_context(cafile=str(self.authority.path))
        with (
            socket.create_connection(("127.0.0.1", self.port), SECONDS) as connection,
            context.wrap_socket(connection, server_hostname="localhost") as wrapped,
        ):
            certificate = wrapped.getpeercert()
        assert certificate is not None
        return int(str(certificate["serialNumber"]), 16)


@pytest.fixture
def server(
    tmp_path: pathlib.Path, authority: Authority, request: pytest.FixtureRequest
) -> Iterator[TlsServer]:
    tls = {key: str(authority.path) if value == "CA" else value for key, value in request.param}
    made = TlsServer(tmp_path, authority, **tls)
    try:
        yield made
    finally:
        made.process.end()


REQUIRED = (("client_ca_file", "CA"),)
OPTIONAL = (("client_ca_file", "CA"), ("client_certificates", "optional"))


@pytest.mark.parametrize("server", [()], indirect=True)
def test_keys_over_tls_and_a_renewed_certificate(server: TlsServer) -> None:
    with server.client() as client:
        assert client.get("/healthz").status_code == 200
        assert client.get("/v1/models").status_code == 401
        assert client.get("/v1/models", headers=bearer("alice")).status_code == 200
    assert server.list_devices(headers=bearer("bob")).local_device
    with pytest.raises(grpc.RpcError) as error:
        server.list_devices()
    assert error.value.code() is grpc.StatusCode.UNAUTHENTICATED
    before = server.serial()
    server.authority.issue("localhost", ip="127.0.0.1")
    server.process.wait_for("The certificate was read again")
    assert server.serial() != before
    with server.client() as client:
        assert client.get("/healthz").status_code == 200
    assert server.list_devices(headers=bearer("bob")).local_device
    assert server.process.stop() == 0


@pytest.mark.parametrize("server", [REQUIRED], indirect=True)
def test_a_required_certificate_is_the_identity(
    server: TlsServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with server.client("alice.example") as client:
        opened = client.post("/v1/sessions", json=HALF_PLUS_TWO)
        assert opened.status_code == 201
        path = opened.headers["location"]
        assert len(client.get("/v1/sessions").json()["sessions"]) == 1
        as_bob = client.get(path, headers=bearer("bob"))  # a key beside the certificate counts
        assert as_bob.status_code == 404
    assert server.list_devices("alice.example").local_device
    with server.client("unknown.example") as client:
        assert client.get("/v1/models").status_code == 401
    with pytest.raises(grpc.RpcError) as error:
        server.list_devices("unknown.example")
    assert error.value.code() is grpc.StatusCode.UNAUTHENTICATED
    with server.client() as client, pytest.raises(httpx.TransportError):
        client.get("/healthz")
    with pytest.raises(grpc.RpcError) as error:
        server.list_devices(headers=bearer("bob"))
    assert error.value.code() is grpc.StatusCode.UNAVAILABLE
    foreign = Authority(tmp_path_factory.mktemp("foreign")).issue("alice.example")
    context = ssl.create_default_context(cafile=str(server.authority.path))
    context.load_cert_chain(*foreign)
    with (
        httpx.Client(base_url=f"https://localhost:{server.port}", verify=context) as client,
        pytest.raises(httpx.TransportError),
    ):
        client.get("/healthz")


@pytest.mark.parametrize("server", [OPTIONAL], indirect=True)
def test_an_optional_certificate(server: TlsServer) -> None:
    with server.client("alice.example") as client:
        assert client.get("/v1/sessions").status_code == 200
    with server.client() as client:
        assert client.get("/v1/sessions").status_code == 401
        assert client.get("/v1/sessions", headers=bearer("bob")).status_code == 200
    assert server.list_devices(headers=bearer("bob")).local_device


def test_wrong_files_are_reported_at_the_start(tmp_path: pathlib.Path) -> None:
    (tmp_path / "wrong.pem").write_text("no certificate")
    config = tmp_path / "server.yaml"
    wrong = str(tmp_path / "wrong.pem")
    config.write_text(yaml.safe_dump({"tls": {"certificate_file": wrong, "key_file": wrong}}))
    command = [sys.executable, "-m", "server.main", "serve", f"--config={config}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "tls.certificate_file, key_file or client_ca_file is wrong" in done.stderr


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01\x02\x00\x01\x00"], ids=["nothing", "a part"])
@pytest.mark.parametrize("rest", [{"header_seconds": 1.0}, {"max_connections": 4}], ids=str)
def test_handshakes_are_limited_in_time_and_number(
    tmp_path: pathlib.Path, authority: Authority, rest: dict[str, Any], sent: bytes
) -> None:
    server = TlsServer(tmp_path, authority, rest=rest)
    held = [socket.create_connection(("127.0.0.1", server.port), SECONDS) for _ in range(8)]
    try:
        for each in held:
            each.sendall(sent)
        for each in held:  # the first ones end in time, the others at once
            with contextlib.suppress(ConnectionResetError):
                assert each.recv(1) == b""
        with server.client() as client:
            assert client.get("/healthz").status_code == 200
        assert server.process.stop() == 0
        assert "Traceback" not in server.process.log
    finally:
        for each in held:
            each.close()
        server.process.end()


@pytest.mark.parametrize("server", [()], indirect=True)
def test_a_request_that_comes_with_the_end_of_the_handshake(server: TlsServer) -> None:
    """The client's last message of the handshake and its request are one segment."""
    context = ssl.create_default_context(cafile=str(server.authority.path))
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    wrapped = context.wrap_bio(to_client, to_server, server_hostname="localhost")
    with socket.create_connection(("127.0.0.1", server.port), SECONDS) as connection:
        with pytest.raises(ssl.SSLWantReadError):
            wrapped.do_handshake()
        connection.sendall(to_server.read())
        while True:
            to_client.write(connection.recv(1 << 16))
            try:
                wrapped.do_handshake()
                break
            except ssl.SSLWantReadError:
                continue
        wrapped.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        connection.sendall(to_server.read())
        answer = b""
        while b"\r\n\r\n" not in answer:
            to_client.write(connection.recv(1 << 16))
            try:
                answer += wrapped.read(1 << 16)
            except ssl.SSLWantReadError:
                continue
    assert answer.startswith(b"HTTP/1.1 200")


def test_the_name_in_a_certificate_counts_in_every_process(
    tmp_path: pathlib.Path, authority: Authority
) -> None:
    server = TlsServer(tmp_path, authority, processes=2, client_ca_file=str(authority.path))
    try:
        server.process.wait_for("Serving on")
        places: set[str] = set()
        sessions = []
        while len(places) < 2:
            with server.client("alice.example") as client:
                answer = client.post("/v1/sessions", json={})
            assert answer.status_code == 201, answer.text
            sessions.append(answer.json()["session"])
            places.add(sessions[-1][-3:])
        for session in sessions:
            for _ in range(4):
                with server.client("alice.example") as client:
                    assert client.get(f"/v1/sessions/{session}").status_code == 200
        for _ in range(6):
            server.list_devices("alice.example")  # TensorFlow's master is in one process
        with server.client("mallory.example") as client:
            refused = client.get(f"/v1/sessions/{sessions[0]}")
            assert refused.status_code == 401
            forged = {"x-runstep-certificate-names": '["alice.example"]'}
            refused = client.get(f"/v1/sessions/{sessions[0]}", headers=forged)
            assert refused.status_code == 401
    finally:
        server.process.end()
