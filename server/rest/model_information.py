"""Write the status and the metadata of a model, and the list of models, as JSON.

TF: tensorflow_serving/model_servers/{get_model_status_impl,get_model_metadata_impl}.cc
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Container, Mapping, Sequence
from typing import Any

import orjson
from google.protobuf import json_format

import protos as pb
from runtime.api import DataType
from server.access.caller import LOCAL, Caller
from server.models.managed_models import VersionStatus
from server.models.manager import ModelManager
from server.models.model_version import ModelVersion

_DTYPE_NAMES = {int(data_type): f"DT_{data_type.name}" for data_type in DataType}
_INTERNAL = "__saved_model_"  # TF: saved_model/constants.h (kSavedModelInitOpSignatureKey)
_OK = {"error_code": "OK", "error_message": ""}


def write_status(statuses: Sequence[VersionStatus], strict: bool, caller: Caller = LOCAL) -> bytes:
    """Write `{"model_version_status": […]}`, in which 64-bit integers are strings.

    If `strict` is true, the layout is TensorFlow Serving's. Errors have only what the caller may
    see.
    """
    value = {"model_version_status": [_status(status, caller) for status in statuses]}
    return _indented(value) if strict else orjson.dumps(value)


def _status(status: VersionStatus, caller: Caller) -> dict[str, Any]:
    error = status.error
    return {
        "version": str(status.version),
        "state": status.state.value,
        "status": _OK
        if error is None
        else {"error_code": error.code.name, "error_message": caller.shown_text(error.message)},
    }


def write_metadata(version: ModelVersion, strict: bool) -> bytes:
    """Write the signatures of a version in the form of a GetModelMetadataResponse.

    The form is `{"model_spec": …, "metadata": {"signature_def": {"signature_def": {…}}}}`. If
    `strict` is true, the layout is TensorFlow Serving's.
    """
    spec = {"name": version.name, "signature_name": "", "version": str(version.version)}
    definitions = version.bundle.meta_graph_def.signature_def
    signatures = {
        "signature_def": {name: _signature(definitions[name]) for name in sorted(definitions)}
    }
    if not strict:
        return orjson.dumps({"model_spec": spec, "metadata": {"signature_def": signatures}})
    return b'{\n"model_spec":%s,\n"metadata": {"signature_def": %s}\n}\n' % (
        _indented(spec),
        _indented(signatures),
    )


def _signature(definition: pb.SignatureDef) -> dict[str, Any]:
    return {
        "inputs": _tensor_infos(definition.inputs),
        "outputs": _tensor_infos(definition.outputs),
        "method_name": definition.method_name,
        "defaults": {
            alias: _message(definition.defaults[alias]) for alias in sorted(definition.defaults)
        },
    }


def _tensor_infos(infos: Mapping[str, pb.TensorInfo]) -> dict[str, Any]:
    return {alias: _tensor_info(infos[alias]) for alias in sorted(infos)}


def _tensor_info(info: pb.TensorInfo) -> dict[str, Any]:
    """Return a TensorInfo as proto JSON with default values.

    The members are in TensorFlow Serving's order.
    """
    value: dict[str, Any] = {"dtype": _dtype_name(info.dtype)}
    if info.HasField("tensor_shape"):
        value["tensor_shape"] = {
            "dim": [{"size": str(dim.size), "name": dim.name} for dim in info.tensor_shape.dim],
            "unknown_rank": info.tensor_shape.unknown_rank,
        }
    encoding = info.WhichOneof("encoding")
    if encoding == "name":
        value["name"] = info.name
    elif encoding is not None:
        value[encoding] = _message(getattr(info, encoding))
    return value


def _dtype_name(number: int) -> str:
    known = _DTYPE_NAMES.get(number)
    return str(number) if known is None else known


def _message(message: Any) -> dict[str, Any]:
    value: dict[str, Any] = json_format.MessageToDict(
        message, always_print_fields_with_no_presence=True, preserving_proto_field_name=True
    )
    return value


def _indented(value: Any) -> bytes:
    """Write JSON in protobuf's layout: one space per level, and a newline after the value."""
    return json.dumps(value, indent=1, ensure_ascii=False).encode() + b"\n"


def _callable(version: ModelVersion) -> list[str]:
    """Return the signatures that a request may name, which excludes the init op's signature."""
    return [name for name in version.signatures if not name.startswith(_INTERNAL)]


def _clusters(version: ModelVersion) -> list[dict[str, object]]:
    """Return the clusters of a version's compiled steps, with the engine that computes each."""
    return [
        {"fetches": list(fetches), **dataclasses.asdict(cluster)}
        for fetches, clusters in version.session.clusters().items()
        for cluster in clusters
    ]


def _engine(version: ModelVersion) -> dict[str, str] | None:
    """Return what computes a version's clusters; None as long as no step was worth it."""
    use = version.session.engine()
    return None if use is None else dataclasses.asdict(use)


def _batching(version: ModelVersion) -> dict[str, dict[str, str]]:
    """Return, for each signature, its form of batching, or why it is not batched."""
    return {
        name: {"mode": batches.mode} if batches.refused is None else {"refused": batches.refused}
        for name, batches in version.batches.items()
    }


def _unavailable(
    name: str, labels: Mapping[str, int], available: Container[tuple[str, int]]
) -> dict[str, str]:
    """Return the labels of a model whose versions do not serve, with these versions."""
    return {
        label: str(version) for label, version in labels.items() if (name, version) not in available
    }


def write_model_list(manager: ModelManager, caller: Caller = LOCAL) -> bytes:
    """Write every configured model with its versions, labels and signatures.

    TensorFlow Serving has no such list.
    """
    available = {(v.name, v.version): v for v in manager.available_versions()}
    models = []
    for name in manager.model_names():
        labels = manager.labels(name)
        versions = []
        for status in manager.known_statuses(name):
            loaded = available.get((name, status.version))
            versions.append(
                _status(status, caller)
                | {
                    "labels": sorted(k for k, v in labels.items() if v == status.version),
                    "signatures": [] if loaded is None else _callable(loaded),
                    "in_flight": 0 if loaded is None else loaded.in_flight,
                    "engine": None if loaded is None else _engine(loaded),
                    "clusters": [] if loaded is None else _clusters(loaded),
                }
                | ({} if loaded is None or not loaded.batches else {"batching": _batching(loaded)})
            )
        models.append(
            {"name": name, "ready": any(v["state"] == "AVAILABLE" for v in versions),
             "versions": versions, "unavailable_labels": _unavailable(name, labels, available)}
        )  # fmt: skip
    return orjson.dumps({"models": models})
