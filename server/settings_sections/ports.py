"""The settings of the ports: REST, gRPC and TLS."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, PlainValidator, model_validator

from server.settings_sections.numbers import (
    MAX_COUNT,
    Bytes,
    Count,
    Milliseconds,
    Seconds,
    Threads,
)
from server.settings_sections.section import Section

NonFinite = Literal["token", "string", "null", "error"]


def _port(value: object) -> object:
    text = str(value)
    if text == "free" or (text.isascii() and text.isdigit() and int(text) <= 65535):
        return value if text == "free" else int(text)
    raise ValueError("must be a port from 0 to 65535, where 0 is none, or free")


def _host(value: str) -> str:
    host = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    if host in ("", "*"):
        raise ValueError(
            "must be a name or an address; 0.0.0.0 is every one of IPv4, and :: of IPv6 and IPv4"
        )
    return host


def _channel_argument(value: int | str) -> int | str:
    if isinstance(value, int) and abs(value) > MAX_COUNT:
        raise ValueError(f"must be a number from -{MAX_COUNT} to {MAX_COUNT}, or a text")
    return value


# A number that gRPC takes, or a text.
ChannelArgument = Annotated[int | str, AfterValidator(_channel_argument)]
# A port's number, 0 for none, or "free" for any free port, whose number the log says.
Port = Annotated[int | Literal["free"], PlainValidator(_port)]
# A name, or an address, whose digits of IPv6 may be in brackets.
Host = Annotated[str, AfterValidator(_host)]
_OTHER_PATHS = ("/healthz", "/readyz", "/docs", "/openapi.json")


class RestSettings(Section):
    """The settings of the REST endpoints."""

    host: Host = "0.0.0.0"
    port: Port = 8501
    timeout_ms: Milliseconds = Field(default=30000, ge=0)
    max_body_bytes: Bytes = Field(default=64 << 20, gt=0)
    max_answer_bytes: Bytes = Field(default=1 << 30, gt=0)
    max_bytes_in_flight: Bytes | None = Field(default=None, gt=0)
    max_connections: Count = Field(default=4096, gt=0)
    max_header_bytes: Bytes = Field(default=64 << 10, gt=0)
    max_headers: Count = Field(default=128, gt=0)
    header_seconds: Seconds = Field(default=10, gt=0)
    body_seconds: Seconds = Field(default=30, gt=0)
    keep_alive_seconds: Seconds = Field(default=5, gt=0)
    non_finite: NonFinite = "string"
    strict_tensorflow_serving: bool = False
    drain_seconds: Seconds = Field(default=30, ge=0)
    access_log: bool = False
    cors: bool = False
    codec_threads: Threads | None = Field(default=None, ge=1)
    metrics_path: str | None = Field(default="/monitoring/prometheus/metrics", pattern="^/.+")

    @model_validator(mode="after")
    def _metrics_have_a_path_of_their_own(self) -> RestSettings:
        """Check that no rule of access for another call holds for the metrics."""
        path = self.metrics_path or ""
        if path.startswith(("/v1", "/v2")) or path in _OTHER_PATHS or "{" in path:
            raise ValueError(f"metrics_path {path} is that of another call")
        return self


class GrpcSettings(Section):
    """The settings of the gRPC endpoints.

    `tensorflow_port` is a second port, for clients that can send no credentials. `ssl_config_file`
    is TensorFlow Serving's text SSLConfig; it takes the place of the section `tls` for gRPC.
    `background_port` is a port of the background process (server/background), for predictions of
    low priority.
    """

    port: Port = 8500
    background_port: Port = 0
    socket_path: str | None = Field(default=None, min_length=1)
    ssl_config_file: str | None = Field(default=None, min_length=1)
    channel_arguments: Mapping[str, ChannelArgument] = Field(default_factory=dict)
    max_message_bytes: Count = Field(default=(1 << 31) - 1, gt=0)
    tensor_content: bool = False
    tensorflow_port: int | None = Field(default=None, ge=0, le=65535)
    tensorflow_host: Host = "127.0.0.1"
    tensorflow_owner: str = Field(default="tensorflow", min_length=1)
    max_connections: Count = Field(default=1024, gt=0)
    max_concurrent_streams: Count = Field(default=1024, gt=0)
    idle_seconds: Seconds = Field(default=1800, gt=0)


class TlsSettings(Section):
    """The certificate of both ports, and the authority of client certificates."""

    certificate_file: str | None = None
    key_file: str | None = None
    client_ca_file: str | None = None
    client_certificates: Literal["required", "optional"] = "required"

    @model_validator(mode="after")
    def _files_belong_together(self) -> TlsSettings:
        if (self.certificate_file is None) != (self.key_file is None):
            raise ValueError("certificate_file and key_file must be given together")
        if self.client_ca_file is not None and self.certificate_file is None:
            raise ValueError("client_ca_file requires certificate_file and key_file")
        return self

    @property
    def requires_client_certificates(self) -> bool:
        """Whether nobody can connect without a certificate."""
        return self.client_ca_file is not None and self.client_certificates == "required"


def is_loopback(host: str) -> bool:
    """Return whether a host name, or an address that a server binds, is this machine only."""
    if host.rstrip(".").lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:  # another name
        return False
