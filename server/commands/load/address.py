"""What the argument of `runstep bench` means: a folder, or a server's address and a model."""

from __future__ import annotations

import dataclasses
import re
import urllib.parse

from runtime.errors import InvalidArgumentError
from server.addresses import address_of

PROTOCOLS = ("rest", "v2", "grpc")
_FORMS = (
    "http://HOST:PORT/v1/models/NAME (REST), http://HOST:PORT/v2/models/NAME (Open Inference "
    "Protocol) or grpc://HOST:PORT/NAME, with https and grpcs for TLS"
)
_PORTS = {"http": 8501, "https": 8501, "grpc": 8500, "grpcs": 8500}
# A prefix, which a proxy may have put there, the model, its version or label, and the call.
_V1 = re.compile(
    r"(?P<prefix>.*)/v1/models/(?P<model>[^/:]+)"
    r"(/versions/(?P<version>\d+)|/labels/(?P<label>[^/:]+))?(:predict)?/?"
)
_V2 = re.compile(
    r"(?P<prefix>.*)/v2/models/(?P<model>[^/]+)(/versions/(?P<version>\d+))?(/infer)?/?"
)
_GRPC = re.compile(r"(?P<prefix>)/(?P<model>[^/]+)(/(?P<version>\d+))?/?")


@dataclasses.dataclass(frozen=True, slots=True)
class Address:
    """A server, the protocol in which it is called, and the model; "" if none is named."""

    protocol: str
    host: str
    port: int
    encrypted: bool
    prefix: str = ""
    model: str = ""
    version: str = ""
    label: str = ""

    @property
    def model_path(self) -> str:
        """The path of the model's URL in REST or the Open Inference Protocol."""
        number = "v1" if self.protocol == "rest" else "v2"
        path = f"{self.prefix}/{number}/models/{urllib.parse.quote(self.model, safe='')}"
        if self.label:
            return f"{path}/labels/{urllib.parse.quote(self.label, safe='')}"
        return f"{path}/versions/{self.version}" if self.version else path

    @property
    def authority(self) -> str:
        """Host and port, as in a URL."""
        return address_of(self.host, self.port)

    def __str__(self) -> str:
        """Return what is called, for messages."""
        version = f" version {self.version}" if self.version else ""
        version = f" label {self.label}" if self.label else version
        return f"model {self.model}{version} at {self.authority}"


def is_url(text: str) -> bool:
    """Return whether an argument is a URL, so that it is not a folder."""
    return "://" in text


def parse_address(text: str, protocol: str | None, model: str | None) -> Address:
    """Return what a URL, --protocol and --model mean together.

    Raises InvalidArgumentError if that is nothing, or they contradict each other.
    """
    try:
        parts = urllib.parse.urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidArgumentError(f"{text} is no URL: {error}") from None
    if parts.scheme not in _PORTS or not host or parts.query or parts.fragment or parts.username:
        raise InvalidArgumentError(f"{text} is none of the forms {_FORMS}")
    is_grpc = parts.scheme.startswith("grpc")
    named, found = _named(parts.path, is_grpc)
    if named is None:
        raise InvalidArgumentError(f"The path of {text} is none of the forms {_FORMS}")
    protocol = protocol or named or ("grpc" if is_grpc else "rest")
    if (named and protocol != named) or is_grpc != (protocol == "grpc"):
        raise InvalidArgumentError(f"--protocol={protocol} contradicts {text}")
    if model and found.get("model", model) != model:
        raise InvalidArgumentError(f"--model={model} contradicts {text}")
    found["model"] = found.get("model") or model or ""
    return Address(
        protocol, host, port or _PORTS[parts.scheme], parts.scheme in ("https", "grpcs"), **found
    )


def _named(path: str, is_grpc: bool) -> tuple[str | None, dict[str, str]]:
    """Return the protocol that a path names, "" if any, or None if it is wrong; and its parts."""
    if path in ("", "/"):
        return "", {}
    forms = {"grpc": _GRPC} if is_grpc else {"rest": _V1, "v2": _V2}
    for name, form in forms.items():
        if match := form.fullmatch(path):
            parts = {key: value for key, value in match.groupdict().items() if value}
            return name, {
                key: value if key == "prefix" else urllib.parse.unquote(value)
                for key, value in parts.items()
            }
    return None, {}
