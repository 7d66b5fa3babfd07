"""TLS of both ports: read the certificate files, and the names in client certificates.

The certificate and its key are read again when they change, so that a renewed certificate is used
by new connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import ssl
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import protos as pb
from runtime.errors import InvalidArgumentError
from server.file_watch import FileWatch
from server.settings import Settings
from server.settings_sections.ports import TlsSettings
from server.text_message import read_text_message

_log = logging.getLogger(__name__)
RELOAD_SECONDS = 1.0  # the time between two looks at the files


class TlsFiles(NamedTuple):
    """The contents of the files, in PEM; `client_ca` is None if clients need no certificate."""

    key: bytes
    certificates: bytes
    client_ca: bytes | None


class TlsSource(NamedTuple):
    """Where the certificate of a port comes from: `read` raises as `read_tls_files` does."""

    paths: tuple[str | None, ...]
    read: Callable[[], TlsFiles | None]


NO_TLS = TlsSource((), lambda: None)


def rpc_tls(settings: Settings) -> TlsSource:
    """Return the source for the gRPC ports: an SSLConfig if there is one, else the section tls."""
    file, tls = settings.grpc.ssl_config_file, settings.tls
    if file is not None:
        return TlsSource((file,), lambda: _read_ssl_config(file))
    paths = (tls.certificate_file, tls.key_file, tls.client_ca_file)
    return TlsSource(paths, lambda: read_tls_files(tls))


def _read_ssl_config(path: str) -> TlsFiles:
    """Read the keys and certificates that are in a text SSLConfig.

    TF: tensorflow_serving/model_servers/server.cc (BuildServerCredentials)
    """
    config = read_text_message(path, pb.server_config.SSLConfig())
    if not config.server_key or not config.server_cert:
        raise InvalidArgumentError(f"{path} must have server_key and server_cert")
    if config.client_verify and not config.custom_ca:
        raise InvalidArgumentError(f"{path} has client_verify; this requires custom_ca")
    _check_pem(path, config)
    client_ca = config.custom_ca.encode() if config.client_verify else None
    return TlsFiles(config.server_key.encode(), config.server_cert.encode(), client_ca)


def _check_pem(path: str, config: pb.server_config.SSLConfig) -> None:
    """Raise InvalidArgumentError that names the field of an SSLConfig that is wrong.

    gRPC would only say that it cannot bind to the address.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    field = "server_cert must have PEM certificates"
    try:
        with _file_in_memory(config.server_cert) as file:
            context.load_verify_locations(file)
        field = "server_key must have the PEM key of server_cert"
        with _file_in_memory(f"{config.server_key}\n{config.server_cert}") as file:
            context.load_cert_chain(file, password=_no_password)
        if config.client_verify:
            field = "custom_ca must have PEM certificates"
            with _file_in_memory(config.custom_ca) as file:
                context.load_verify_locations(file)
    except OSError as error:  # an SSLError is one
        raise InvalidArgumentError(f"{path}: {field}: {error}") from None


@contextlib.contextmanager
def _file_in_memory(text: str) -> Iterator[str]:
    """Make a file that OpenSSL can read, on Linux without writing a key to a disk."""
    if not hasattr(os, "memfd_create"):
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as named:  # only its owner reads it
            named.write(text)
            named.flush()
            yield named.name
        return
    with os.fdopen(os.memfd_create("pem"), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}"


def read_tls_files(settings: TlsSettings) -> TlsFiles | None:
    """Read the files, or return None without TLS.

    Raises InvalidArgumentError if a file cannot be read, or key and certificate do not fit.
    """
    if settings.certificate_file is None or settings.key_file is None:
        return None
    _check(settings)
    requires = settings.requires_client_certificates
    return TlsFiles(
        _read(settings.key_file),
        _read(settings.certificate_file),
        _read(settings.client_ca_file) if requires and settings.client_ca_file else None,
    )


def server_options(settings: TlsSettings) -> dict[str, Any]:
    """Return the options of uvicorn for TLS, which are none without a certificate."""
    if settings.certificate_file is None:
        return {}
    options: dict[str, Any] = {
        "ssl_certfile": settings.certificate_file,
        "ssl_keyfile": settings.key_file,
    }
    if settings.client_ca_file is not None:
        required = settings.requires_client_certificates
        options["ssl_ca_certs"] = settings.client_ca_file
        options["ssl_cert_reqs"] = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
    return options


def certificate_names(certificate: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the names in a verified certificate, as `ssl.SSLSocket.getpeercert` describes it.

    They are the alternative names of any kind, and then the common name.
    """
    if not certificate:
        return ()
    names = [value for _, value in certificate.get("subjectAltName", ())]
    for part in certificate.get("subject", ()):
        names += [value for key, value in part if key == "commonName"]
    return tuple(dict.fromkeys(names))


def rpc_certificate_names(context: Mapping[str, Iterable[bytes]]) -> tuple[str, ...]:
    """Return the same names from the authentication context of a gRPC call."""
    names = [
        value.decode(errors="replace")
        for key in ("x509_subject_alternative_name", "x509_common_name")
        for value in context.get(key, ())
    ]
    return tuple(dict.fromkeys(names))


async def reload_certificate(settings: TlsSettings, context: ssl.SSLContext) -> None:
    """Use a changed certificate for new connections, until cancelled.

    Authorities of clients that are in the changed file are accepted too; OpenSSL removes none.
    """
    watch = FileWatch((settings.certificate_file, settings.key_file, settings.client_ca_file))
    while settings.certificate_file is not None:
        await asyncio.sleep(RELOAD_SECONDS)
        if not await asyncio.to_thread(watch.has_changed):
            continue
        try:
            _check(settings)
            context.load_cert_chain(settings.certificate_file, settings.key_file)
            if settings.client_ca_file is not None:
                context.load_verify_locations(settings.client_ca_file)
        except (InvalidArgumentError, OSError) as error:
            _log.error("The certificate is unchanged, because a file is wrong: %s", error)
        else:
            _log.info("The certificate was read again")


def _check(settings: TlsSettings) -> None:
    """Raise InvalidArgumentError if the files are not a certificate with its key."""
    fresh = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        fresh.load_cert_chain(str(settings.certificate_file), settings.key_file, _no_password)
        if settings.client_ca_file is not None:
            fresh.load_verify_locations(settings.client_ca_file)
    except OSError as error:  # an SSLError is one
        raise InvalidArgumentError(
            f"tls.certificate_file, key_file or client_ca_file is wrong: {error}"
        ) from None


def _no_password() -> str:
    """Give no password, because the terminal would be asked for one."""
    return ""


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InvalidArgumentError(f"Cannot read {path}: {error.strerror}") from None
