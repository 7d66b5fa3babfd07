"""The calls about models and the server: predict, metadata, health, pools, administration."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np

from runstep.client.exchange import (
    Answer,
    Request,
    Steps,
    check,
    get,
    post,
    priority_header,
)
from runstep.client.tensors import as_datatype, read_outputs, write_inputs
from runtime.errors import (
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    UnavailableError,
)

_HEAD_LENGTH = "Inference-Header-Content-Length"
_MIN_SERVER_ERROR = 500


def predict(
    model: str,
    inputs: Mapping[str, Any] | np.ndarray,
    *,
    version: int | None = None,
    label: str | None = None,
    signature_name: str | None = None,
    outputs: Sequence[str] | None = None,
    priority: str | None = None,
    timeout: float | None = None,
) -> Steps[dict[str, np.ndarray]]:
    """Run a signature of a model; arrays travel in binary form both ways.

    Args:
        model: Its name.
        inputs: Input name → array. Anything else (a list, a number) is converted to the datatype
            that the model's metadata give, which takes one more request. An array alone is the
            only input.
        version: Default: the version that serves, or the one of `label`.
        label: A version label; not together with `version`.
        signature_name: Default: `serving_default`.
        outputs: The outputs to return; default: all.
        priority: An entry of the server's `priorities`.
        timeout: Seconds, the wait in the server's queues included; then DeadlineExceededError.

    Returns:
        Output name → array; strings are object arrays of bytes.

    Raises:
        OpError: The server's error, by its code: NotFoundError, InvalidArgumentError, … .
    """
    if label is not None:
        if version is not None:
            raise InvalidArgumentError("expected version or label, got both")
        version = yield from version_of(model, label, timeout=timeout)
    arrays = yield from _arrays(model, inputs, version, signature_name, timeout)
    described, binary = write_inputs(arrays)
    parameters: dict[str, Any] = {"binary_data_output": True}
    if signature_name is not None:
        parameters["signature_name"] = signature_name
    if priority is not None:
        parameters["priority"] = priority
    body: dict[str, Any] = {"inputs": described, "parameters": parameters}
    if outputs is not None:
        body["outputs"] = [{"name": name} for name in outputs]
    head = json.dumps(body).encode()
    request = Request(
        "POST",
        f"{_v2_path(model, version)}/infer",
        head + binary,
        {
            "Content-Type": "application/octet-stream",
            _HEAD_LENGTH: str(len(head)),
            **priority_header(priority),
        },
        timeout,
        is_refusable=True,
    )
    answer = check((yield request))
    content = answer.content
    length = answer.headers.get(_HEAD_LENGTH.lower(), str(len(content)))
    try:
        head_length = int(length)
        answered = json.loads(content[:head_length])["outputs"]
    except (ValueError, KeyError, TypeError) as error:
        raise InternalError(f"the server sent an unreadable answer: {error!r}") from None
    return read_outputs(answered, content[head_length:])


def _arrays(
    model: str,
    inputs: Mapping[str, Any] | np.ndarray,
    version: int | None,
    signature_name: str | None,
    timeout: float | None,
) -> Steps[dict[str, np.ndarray]]:
    if isinstance(inputs, Mapping) and all(
        isinstance(each, np.ndarray | np.generic) for each in inputs.values()
    ):
        return {name: np.asarray(each) for name, each in inputs.items()}
    query = "" if signature_name is None else f"?signature_name={quote(signature_name, safe='')}"
    metadata = check((yield get(f"{_v2_path(model, version)}{query}", timeout))).json()
    types = {each["name"]: each["datatype"] for each in metadata["inputs"]}
    if not isinstance(inputs, Mapping):
        if len(types) != 1:
            raise InvalidArgumentError(
                f"{model} has the inputs {', '.join(sorted(types))}: expected a dict with them"
            )
        inputs = dict.fromkeys(types, inputs)
    unknown = sorted(set(inputs) - set(types))
    if unknown:
        raise InvalidArgumentError(
            f"{model} has no input {unknown[0]!r}; it has {', '.join(sorted(types))}"
        )
    return {
        name: np.asarray(each)
        if isinstance(each, np.ndarray | np.generic)
        else as_datatype(each, types[name])
        for name, each in inputs.items()
    }


def version_of(model: str, label: str, *, timeout: float | None = None) -> Steps[int]:
    """Return the version that a label names; raise InvalidArgumentError if there is no such label.

    It comes from the metadata, because the status of TensorFlow Serving's API ignores labels.
    """
    path = f"/v1/models/{_quoted(model)}/labels/{_quoted(label)}/metadata"
    return int(check((yield get(path, timeout))).json()["model_spec"]["version"])


def predict_json(
    model: str,
    body: Mapping[str, Any],
    *,
    version: int | None = None,
    label: str | None = None,
    method: str = "predict",
    timeout: float | None = None,
) -> Steps[Any]:
    """Send a body of TensorFlow Serving's REST API as it is; return the answer's JSON.

    `method` is predict, classify or regress; the other arguments are those of `predict`.
    """
    path = f"/v1/models/{_quoted(model)}"
    if version is not None:
        path += f"/versions/{version}"
    elif label is not None:
        path += f"/labels/{_quoted(label)}"
    return check((yield post(f"{path}:{method}", body, timeout, refusable=True))).json()


def metadata(model: str, version: int | None = None) -> Steps[dict[str, Any]]:
    """Return a model's `signature_def` and versions, as TensorFlow Serving's REST API has them."""
    part = "" if version is None else f"/versions/{version}"
    found: dict[str, Any] = check((yield get(f"/v1/models/{_quoted(model)}{part}/metadata"))).json()
    return found


def status(model: str, version: int | None = None) -> Steps[list[dict[str, Any]]]:
    """Return the state of each version of a model, the highest first."""
    part = "" if version is None else f"/versions/{version}"
    answer = check((yield get(f"/v1/models/{_quoted(model)}{part}"))).json()
    found: list[dict[str, Any]] = answer["model_version_status"]
    return found


def models() -> Steps[list[dict[str, Any]]]:
    """Return the models of the server, with their versions, states and labels."""
    found: list[dict[str, Any]] = check((yield get("/v1/models"))).json()["models"]
    return found


def thread_pools() -> Steps[list[dict[str, Any]]]:
    """Return the server's thread pools with their figures."""
    found: list[dict[str, Any]] = check((yield get("/v1/threadpools"))).json()["thread_pools"]
    return found


def is_alive() -> Steps[bool]:
    """Return whether the server answers; False if it can't be reached."""
    answer = yield from _probe("/healthz")
    return answer is not None and answer.status < _MIN_SERVER_ERROR


def is_ready() -> Steps[bool]:
    """Return whether the server has loaded its models and takes requests; no answer is False."""
    answer = yield from _probe("/readyz")
    return answer is not None and answer.status // 100 == 2


def _probe(path: str) -> Steps[Answer | None]:
    try:
        return (yield Request("GET", path))
    except (DeadlineExceededError, UnavailableError):  # it can't be reached, or is too slow
        return None


def repository() -> Steps[list[dict[str, Any]]]:
    """Return the index of the model repository: name, version, state and reason."""
    answer = check((yield post("/v2/repository/index", {}, refusable=True)))
    found: list[dict[str, Any]] = answer.json()
    return found


def load_model(model: str, *, timeout: float | None = None) -> Steps[None]:
    """Load a model, or load it again; return when it serves. Requires the role admin."""
    path = f"/v2/repository/models/{_quoted(model)}/load"
    check((yield post(path, {}, timeout, refusable=False)))


def unload_model(model: str, *, timeout: float | None = None) -> Steps[None]:
    """Unload a model; requests that use it end first. Requires the role admin."""
    path = f"/v2/repository/models/{_quoted(model)}/unload"
    check((yield post(path, {}, timeout, refusable=False)))


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _v2_path(model: str, version: int | None) -> str:
    part = "" if version is None else f"/versions/{version}"
    return f"/v2/models/{_quoted(model)}{part}"
