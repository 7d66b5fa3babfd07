"""Metadata, configuration and readiness of served models, in the form of the protocol's JSON.

The gRPC messages have the same fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runtime.errors import InvalidArgumentError
from server.access.caller import Caller
from server.codec.inference_protocol.datatypes import DATA_TYPES, datatype_name
from server.models.managed_models import VersionStatus
from server.models.manager import ModelManager
from server.models.model_version import ModelVersion
from server.models.signature import Signature, TensorSpec
from server.models.version_policy import (
    EitherVersions,
    LatestVersions,
    SpecificVersions,
    VersionPolicy,
)
from server.models.version_states import ModelState
from server.steps.batching.parameters import BatchParameters

PLATFORM, BACKEND = "tensorflow_savedmodel", "tensorflow"
DEFAULT_SIGNATURE = "serving_default"
EXTENSIONS = ("binary_tensor_data", "classification", "model_configuration", "model_repository",
              "parameters", "schedule_policy", "statistics", "logging", "trace")  # fmt: skip
# Not for clients. TF: tensorflow/python/saved_model/constants.py
_INIT_SIGNATURE = "__saved_model_init_op"
_CONFIG_TYPES = {"BYTES": "TYPE_STRING"}  # the others are TYPE_ and the datatype
_STATES = {
    ModelState.START: "LOADING",
    ModelState.LOADING: "LOADING",
    ModelState.AVAILABLE: "READY",
    ModelState.UNLOADING: "UNLOADING",
    ModelState.END: "UNAVAILABLE",
}


def signature_of(served: ModelVersion, name: str | None) -> Signature:
    """Return the signature `name`, by default serving_default or else the only one of the model.

    Raises InvalidArgumentError if there is none.
    """
    if name is None and DEFAULT_SIGNATURE in served.signatures:
        return served.signatures[DEFAULT_SIGNATURE]
    known = [each for each in served.signatures if each != _INIT_SIGNATURE]
    if name is None:
        name = known[0] if len(known) == 1 else DEFAULT_SIGNATURE
    found = served.signatures.get(name)
    if found is None:
        raise InvalidArgumentError(
            f'Serving signature name: "{name:.80}" not found in signature def; '
            f"known are {', '.join(known) or 'none'}"
        )
    return found


def _dimensions(spec: TensorSpec) -> list[int]:
    """Return the shape of a tensor; the protocol cannot say that the rank is unknown."""
    return [-1] if spec.shape is None else list(spec.shape)


def _tensors(specs: Mapping[str, TensorSpec]) -> list[dict[str, Any]]:
    return [
        {"name": alias, "datatype": datatype_name(spec.data_type), "shape": _dimensions(spec)}
        for alias, spec in specs.items()
    ]


def metadata(served: ModelVersion, signature: str | None, manager: ModelManager) -> dict[str, Any]:
    """Return the metadata of a version, with the tensors of one signature."""
    found = signature_of(served, signature)
    statuses = manager.known_statuses(served.name)
    serving = [each.version for each in statuses if each.state is ModelState.AVAILABLE]
    return {
        "name": served.name,
        "versions": [str(version) for version in sorted(serving)],
        "platform": PLATFORM,
        "inputs": _tensors(found.inputs),
        "outputs": _tensors(found.outputs),
    }


def _config_tensors(specs: Mapping[str, TensorSpec]) -> list[dict[str, Any]]:
    return [
        {"name": alias, "data_type": _config_type(spec), "dims": _dimensions(spec)}
        for alias, spec in specs.items()
    ]


def _config_type(spec: TensorSpec) -> str:
    datatype = datatype_name(spec.data_type)
    if datatype not in DATA_TYPES:
        return "TYPE_INVALID"
    return _CONFIG_TYPES.get(datatype, f"TYPE_{datatype}")


def model_config(
    served: ModelVersion, signature: str | None, policy: VersionPolicy | None
) -> dict[str, Any]:
    """Return the configuration of a version; `policy` is None if its model is not configured.

    `max_batch_size` 0 means that `dims` have every dimension, that of the batch too. A signature
    that is batched has `dynamic_batching`: with the parameters' sizes and delay, or empty in the
    adaptive form, which has none.
    """
    found = signature_of(served, signature)
    config: dict[str, Any] = {"name": served.name, "platform": PLATFORM, "backend": BACKEND}
    if policy is not None:
        config["version_policy"] = _version_policy(policy)
    config |= {
        "max_batch_size": 0,
        "input": _config_tensors(found.inputs),
        "output": _config_tensors(found.outputs),
    }
    batches = served.batches.get(found.name)
    if batches is not None and batches.refused is None:
        config["dynamic_batching"] = _dynamic_batching(batches.parameters)
    return config


def _version_policy(policy: VersionPolicy) -> dict[str, Any]:
    if isinstance(policy, EitherVersions):  # while the model changes to `new`
        return _version_policy(policy.new)
    if isinstance(policy, LatestVersions):
        return {"latest": {"num_versions": max(policy.count, 1)}}
    if isinstance(policy, SpecificVersions):
        return {"specific": {"versions": list(policy.versions)}}
    return {"all": {}}


def _dynamic_batching(parameters: BatchParameters | None) -> dict[str, Any]:
    if parameters is None:
        return {}
    sizes = parameters.allowed_batch_sizes or (parameters.execution_size,)
    return {
        "preferred_batch_size": list(sizes),
        "max_queue_delay_microseconds": parameters.batch_timeout_micros,
    }


def repository_index(
    manager: ModelManager, caller: Caller, *, ready_only: bool
) -> list[dict[str, str]]:
    """Return the versions of all models that are or were configured, with their states.

    Reasons have only what the caller may see.
    """
    index = []
    for name in manager.known_names():
        statuses = manager.known_statuses(name)
        for status in statuses:
            state = _STATES[status.state]
            if state == "READY" or not ready_only:
                reason = caller.shown_text(_reason(status))
                index.append(_entry(name, str(status.version), state, reason))
        if not statuses and not ready_only:
            index.append(_entry(name, "", "UNAVAILABLE", "no versions"))
    return index


def _entry(name: str, version: str, state: str, reason: str) -> dict[str, str]:
    return {"name": name, "version": version, "state": state, "reason": reason}


def _reason(status: VersionStatus) -> str:
    if status.error is not None:
        return status.error.message
    return "unloaded" if status.state is ModelState.END else ""
