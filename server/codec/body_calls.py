"""What the child processes of bodies run: large JSON into arrays, and arrays into large JSON.

A function that raises is not answered with its error: the server reads the body again, by itself,
and finds the same fault.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from runtime.api import CallResult, DataType, DirectSession, dtypes
from server.codec.scalars import NonFinite
from server.codec.serving.answers import write_predict_response
from server.codec.serving.requests import (
    PredictFormat,
    parse_document,
    predict_inputs,
    signature_name,
)
from server.codec.session.json_steps import JsonSteps
from server.codec.session.step_parts import Shape, TensorInfo
from server.steps.step_request import StepRequest
from server.steps.time_limit import call_until

CallFunction: TypeAlias = Callable[[Any, list[np.ndarray]], CallResult]


@dataclasses.dataclass(frozen=True, slots=True)
class _InputTypes:
    """The part of a signature that is required to decode inputs."""

    input_types: Mapping[str, DataType]


class _KnownTensors:
    """A session of which only the tensors that the server knows already can be looked up."""

    def __init__(self, tensors: Mapping[str, tuple[int, list[int] | None]]) -> None:
        self._tensors = tensors

    @property
    def session(self) -> DirectSession:
        """Raise KeyError, because the session is in another process."""
        raise KeyError("session")

    @property
    def tensor_info(self) -> TensorInfo:
        """Return a function that raises KeyError if the server has not sent the tensor."""
        return self._find

    def _find(self, name: str) -> tuple[DataType, Shape]:
        number, shape = self._tensors[name]
        return _data_type(number), None if shape is None else tuple(shape)


def _data_type(number: int) -> DataType:
    return dtypes.from_number(number)[0]


def _read_predict(data: Any, arrays: list[np.ndarray]) -> CallResult:
    """Read a body of a predict request.

    `data` has `strict`, and by signature and alias the numbers of the `types` of inputs. The result
    has the inputs, their `aliases`, the `signature`, the `priority` or null, and the `form`.
    """
    document = parse_document(arrays[0].tobytes())
    signature, priority = signature_name(document), document.members.get("priority")
    if not isinstance(priority, str | None):
        raise TypeError("priority")
    types = {alias: _data_type(number) for alias, number in data["types"][signature].items()}
    inputs = predict_inputs(document, signature, data["strict"], _InputTypes(types))
    found = {
        "aliases": list(inputs),
        "signature": signature,
        "priority": priority,
        "form": document.predict_format.value,
    }
    return CallResult(found, list(inputs.values()))


def _read_run(data: Any, arrays: list[np.ndarray]) -> CallResult:
    """Read a body of a session's `:run`.

    `data` has the `tensors` that the server knows: by name the number of the type, and the shape.
    The result has the feeds and the serialized options, and what `StepRequest` has besides.
    """
    step = StepRequest()
    JsonSteps("json", "string").read_run(arrays[0].tobytes(), step, _KnownTensors(data["tensors"]))
    options = b"" if step.options is None else step.options.SerializeToString()
    found = {
        "feeds": list(step.feeds),
        "fetches": step.fetches,
        "targets": step.targets,
        "fetch_types": [int(each) for each in step.fetch_types],
        "priority": step.priority,
        "has_options": step.options is not None,
        "pool_is_chosen": step.pool_is_chosen,
    }
    return CallResult(found, [*step.feeds.values(), np.frombuffer(options, np.uint8)])


def _write_predictions(data: Any, arrays: list[np.ndarray]) -> CallResult:
    """Write the response to a predict request.

    `data` has the `aliases` of the outputs, the `form`, and how `non_finite` numbers are written.
    """
    outputs = dict(zip(data["aliases"], arrays, strict=True))
    form, non_finite = PredictFormat(data["form"]), NonFinite(data["non_finite"])
    text = write_predict_response(outputs, form, False, non_finite)
    return CallResult(None, [np.frombuffer(text, np.uint8)])


def _in_time(read: CallFunction) -> CallFunction:
    """Return a function that ends `read` after the `seconds` of its data, which may be null."""

    def limited(data: Any, arrays: list[np.ndarray]) -> CallResult:
        if data["seconds"] is None:
            return read(data, arrays)
        return call_until(time.monotonic() + data["seconds"], read, data, arrays)

    return limited


CALLS: dict[str, CallFunction] = {
    "predict": _in_time(_read_predict),
    "run": _in_time(_read_run),
    "write_predictions": _write_predictions,
}
