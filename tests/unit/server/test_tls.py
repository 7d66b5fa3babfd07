import ssl

import pytest

from runtime.errors import InvalidArgumentError
from server.settings import Settings, TlsSettings
from server.tls import (
    TlsFiles,
    certificate_names,
    read_tls_files,
    rpc_certificate_names,
    rpc_tls,
    server_options,
)


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


def test_an_ssl_config_takes_the_place_of_tls(tmp_path):
    file = tmp_path / "ssl.config"
    file.write_text('server_key: "k" server_cert: "c" custom_ca: "a"')
    source = rpc_tls(Settings(grpc={"ssl_config_file": str(file)}))
    assert source.paths == (str(file),)
    assert source.read() == TlsFiles(b"k", b"c", None)
    file.write_text('server_key: "k" server_cert: "c" custom_ca: "a" client_verify: true')
    assert source.read() == TlsFiles(b"k", b"c", b"a")


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
