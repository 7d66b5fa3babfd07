import ssl

import pytest

from runtime.errors import InvalidArgumentError
from server.settings import TlsSettings
from server.tls import (
    certificate_names,
    read_tls_files,
    rpc_certificate_names,
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
