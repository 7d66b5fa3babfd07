"""Read and write ModelSpecs: which model, version and signature a call means.

TF: tensorflow_serving/apis/model.proto, model_servers/server_core.cc (ServableRequestFromModelSpec)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import protos as pb
from runtime.errors import InvalidArgumentError
from server.codec.serving.requests import DEFAULT_SIGNATURE


class Target(NamedTuple):
    """What a ModelSpec means; the version or the label is None."""

    name: str
    version: int | None
    label: str | None
    signature: str


def target_of(request: Any) -> Target:
    """Return what the `model_spec` of a request means.

    Raises InvalidArgumentError if it is missing or names no model.
    """
    if not request.HasField("model_spec"):
        raise InvalidArgumentError("Missing ModelSpec")
    return read_spec(request.model_spec)


def read_spec(spec: pb.serving.ModelSpec) -> Target:
    """Return what a ModelSpec means; raise InvalidArgumentError if it names no model."""
    if not spec.name:
        raise InvalidArgumentError("ModelSpec has no name specified.")
    choice = spec.WhichOneof("version_choice")
    return Target(
        spec.name,
        spec.version.value if choice == "version" else None,
        spec.version_label if choice == "version_label" else None,
        spec.signature_name or DEFAULT_SIGNATURE,
    )


def spec_of(name: str, version: int, signature: str = "") -> pb.serving.ModelSpec:
    """Return the ModelSpec of a response."""
    spec = pb.serving.ModelSpec(name=name, signature_name=signature)
    spec.version.value = version
    return spec
