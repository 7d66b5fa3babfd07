import pytest

from server.access.exposure import exposure
from server.settings import Settings

TLS = {"certificate_file": "c", "key_file": "k", "client_ca_file": "a"}


def test_an_open_server_says_what_is_open_and_how_to_close_it():
    line = exposure(Settings())
    assert line is not None and "\n" not in line
    for text in ("OPEN TO THE NETWORK", "0.0.0.0", "GRAPHS OF THEIR OWN", "access.keys_file",
                 "sessions.graphs: none", "rest.host: 127.0.0.1", "SECURITY.md"):  # fmt: skip
        assert text in line


def test_it_says_no_more_than_is_open():
    line = exposure(Settings(sessions={"graphs": "none"}))
    assert line is not None and "open sessions" in line and "GRAPHS OF" not in line
    line = exposure(Settings(sessions={"enabled": False}))
    assert line is not None and "open sessions" not in line
    assert "CHANGE WHICH MODELS" not in line
    line = exposure(Settings(admin={"enabled": True}))
    assert line is not None and "CHANGE WHICH MODELS ARE SERVED" in line


@pytest.mark.parametrize(
    "settings",
    [
        {"rest": {"host": "127.0.0.1"}},
        {"rest": {"host": "localhost"}},
        {"access": {"keys_file": "k"}},
        {"access": {"jwt": {"key_file": "k"}}},
        {"tls": TLS},
    ],
)
def test_a_closed_server_says_nothing(settings):
    assert exposure(Settings(**settings)) is None


def test_optional_client_certificates_close_nothing():
    assert exposure(Settings(tls=TLS | {"client_certificates": "optional"})) is not None


def test_a_port_for_clients_without_keys_is_open_too():
    access = {"keys_file": "k"}
    port = {"tensorflow_port": 8502, "tensorflow_host": "0.0.0.0"}
    line = exposure(Settings(access=access, grpc=port))
    assert line is not None and "8502 of 0.0.0.0 are tensorflow, without a key" in line
    assert exposure(Settings(access=access, grpc={"tensorflow_port": 8502})) is None
