import json
import os
import re
import ssl
from pathlib import Path
from typing import NamedTuple

import pytest

from runtime.errors import InvalidArgumentError
from server import tls
from server.settings import Settings
from server.settings_sections.ports import TlsSettings
from server.tls import (
    TlsFiles,
    certificate_names,
    read_tls_files,
    rpc_certificate_names,
    rpc_tls,
    server_options,
)
from tests.integration.access import Authority


@pytest.mark.parametrize(
    ("certificate", "names"),
    [
        (None, ()),
        ({}, ()),
        (
            {
                "subject": ((("countryName", "CH"),), (("commonName", "alice"),)),
                "subjectAltName": (("DNS", "a.example"), ("URI", "spiffe://x/a"), ("DNS", "alice")),
            },
            ("a.example", "spiffe://x/a", "alice"),
        ),
        ({"subject": ((("commonName", "alice"),),)}, ("alice",)),
    ],
)
def test_names_of_a_certificate(certificate, names):
    assert certificate_names(certificate) == names


def test_names_of_a_certificate_in_grpc():
    context = {
        "x509_common_name": [b"alice"],
        "x509_subject_alternative_name": [b"a.example", b"alice"],
        "transport_security_type": [b"ssl"],
    }
    assert rpc_certificate_names(context) == ("a.example", "alice")
    assert rpc_certificate_names({}) == ()


def test_without_a_certificate_there_is_no_tls():
    assert server_options(TlsSettings()) == {}
    assert read_tls_files(TlsSettings()) is None


@pytest.mark.parametrize(
    ("clients", "requirement"),
    [("required", ssl.CERT_REQUIRED), ("optional", ssl.CERT_OPTIONAL)],
)
def test_client_certificates_are_requested(clients, requirement):
    settings = TlsSettings(
        certificate_file="c", key_file="k", client_ca_file="a", client_certificates=clients
    )
    assert server_options(settings) == {
        "ssl_certfile": "c", "ssl_keyfile": "k", "ssl_ca_certs": "a", "ssl_cert_reqs": requirement,
    }  # fmt: skip


def test_files_that_are_no_certificate(tmp_path):
    path = tmp_path / "file"
    path.write_text("no certificate")
    settings = TlsSettings(certificate_file=str(path), key_file=str(path))
    with pytest.raises(InvalidArgumentError, match=r"tls\.certificate_file, key_file or client_ca"):
        read_tls_files(settings)


class Pem(NamedTuple):
    """A key, its certificate and the authority's, in PEM."""

    key: str
    certificate: str
    authority: str


def ssl_config(**fields: object) -> str:
    """A text SSLConfig."""
    return " ".join(
        f"{name}: {str(value).lower() if value is True else json.dumps(value)}"
        for name, value in fields.items()
    )


@pytest.fixture
def pem(tmp_path):
    issued = Authority(tmp_path).issue("localhost")
    paths = (issued.key, issued.certificate, tmp_path / "ca.pem")
    return Pem(*(Path(path).read_text() for path in paths))


def read_ssl_config(folder: Path, text: str) -> TlsFiles | None:
    file = folder / "ssl.config"
    file.write_text(text)
    source = rpc_tls(Settings(grpc={"ssl_config_file": str(file)}))
    assert source.paths == (str(file),)
    return source.read()


def test_an_ssl_config_takes_the_place_of_tls(tmp_path, pem):
    fields = {
        "server_key": pem.key, "server_cert": pem.certificate, "custom_ca": pem.authority
    }  # fmt: skip
    key, certificate, authority = (text.encode() for text in pem)
    assert read_ssl_config(tmp_path, ssl_config(**fields)) == TlsFiles(key, certificate, None)
    text = ssl_config(**fields, client_verify=True)
    assert read_ssl_config(tmp_path, text) == TlsFiles(key, certificate, authority)


BROKEN = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"server_cert": "c"}, "server_cert must have PEM certificates: "),
        ({"server_cert": BROKEN}, "server_cert must have PEM certificates: "),
        ({"server_cert": "\u00e9"}, "server_cert must have PEM certificates: "),
        ({"server_key": "k"}, "server_key must have the PEM key of server_cert: "),
        ({"custom_ca": BROKEN}, "custom_ca must have PEM certificates: "),
    ],
)
def test_ssl_configs_whose_pem_is_broken(tmp_path, pem, wrong, message):
    fields = {
        "server_key": pem.key, "server_cert": pem.certificate, "custom_ca": pem.authority
    }  # fmt: skip
    text = ssl_config(**{**fields, **wrong}, client_verify=True)
    with pytest.raises(InvalidArgumentError, match=re.escape(f"ssl.config: {message}")):
        read_ssl_config(tmp_path, text)


def test_an_ssl_config_with_the_key_of_another_certificate(tmp_path, pem):
    other = Path(Authority(tmp_path).issue("other").key).read_text()
    text = ssl_config(server_key=other, server_cert=pem.certificate)
    with pytest.raises(InvalidArgumentError, match="server_key must have the PEM key of server_c"):
        read_ssl_config(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('server_key: "k"', "must have server_key and server_cert"),
        ('server_key: "k" server_cert: "c" client_verify: true', "this requires custom_ca"),
        ("server_key: k", "Invalid protobuf file"),
    ],
)
def test_ssl_configs_that_are_incomplete(tmp_path, text, message):
    file = tmp_path / "ssl.config"
    file.write_text(text)
    with pytest.raises(InvalidArgumentError, match=message):
        rpc_tls(Settings(grpc={"ssl_config_file": str(file)})).read()


def test_without_an_ssl_config_the_ports_share_the_certificate():
    tls = TlsSettings(certificate_file="c", key_file="k", client_ca_file="a")
    assert rpc_tls(Settings(tls=tls)).paths == ("c", "k", "a")
    assert rpc_tls(Settings()).read() is None


def test_a_system_without_files_in_memory_has_a_temporary_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    with tls._file_in_memory("text") as name:
        assert Path(name).read_text() == "text"
    assert not Path(name).exists()
