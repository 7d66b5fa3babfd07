"""InferCall: one inference request while it runs; what it says of its step, and its response.

Source: Open Inference Protocol; Triton's extensions (schedule policy, classification)
"""

from __future__ import annotations

import dataclasses
import time

import numpy as np

from runtime.errors import UnimplementedError
from server.codec.inference_protocol.datatypes import datatype_of
from server.codec.inference_protocol.infer_request import (
    InferReply,
    InferRequest,
    OutputTensor,
    RequestedOutput,
    whole_number,
)
from server.inference_protocol.classification import classes
from server.inference_protocol.input_arrays import input_arrays
from server.inference_protocol.statistics import InferTimes
from server.models.inference_service import Prediction
from server.models.signature import Signature
from server.steps.step_request import StepRequest

_LONGEST_US = 1 << 53
_SEQUENCES = ("sequence_id", "sequence_start", "sequence_end")
_SCHEDULE = frozenset((*_SEQUENCES, "priority", "timeout"))


@dataclasses.dataclass(slots=True)
class InferCall:
    """One inference request; `is_new` is whether it is seen for the first time."""

    request: InferRequest
    is_new: bool = True
    times: InferTimes = dataclasses.field(default_factory=InferTimes)
    signature: Signature | None = None

    def inputs(self, signature: Signature) -> dict[str, np.ndarray]:
        """Return the inputs, and note what the response needs to know of the signature."""
        started = time.perf_counter_ns()
        arrays = input_arrays(self.request, signature)
        self.signature = signature
        for alias, array in arrays.items():
            spec = signature.inputs[alias]
            if array.ndim and spec.shape is not None and spec.shape[:1] == (-1,):
                self.times.batch_size = len(array)
            break
        self.times.input_ns = time.perf_counter_ns() - started
        return arrays

    def reply(self, name: str, prediction: Prediction) -> InferReply:
        """Return the response of model `name`.

        Raises UnimplementedError if the protocol has no datatype for an output.
        """
        request = self.request
        asked = request.outputs or [RequestedOutput(alias) for alias in prediction.outputs]
        outputs = []
        for each in asked:
            array = prediction.outputs[each.name]
            datatype = datatype_of(array, each.name)
            if each.classes:
                spec = None if self.signature is None else self.signature.outputs[each.name].shape
                is_batch = spec is not None and spec[:1] == (-1,)
                array, datatype = classes(array, each.classes, is_batch=is_batch), "BYTES"
            is_binary = request.is_binary if each.is_binary is None else each.is_binary
            outputs.append(OutputTensor(each.name, datatype, array, is_binary))
        return InferReply(name, str(prediction.version), request.id, outputs, prediction.size)


def has_schedule(request: InferRequest) -> bool:
    """Return whether a request says how its step must run, which `set_schedule` applies."""
    return not _SCHEDULE.isdisjoint(request.parameters)


def set_schedule(step: StepRequest, request: InferRequest) -> None:
    """Set priority and deadline from the parameters, which take precedence over headers."""
    parameters = request.parameters
    if not parameters:
        return
    for name in _SEQUENCES:
        if parameters.get(name):
            raise UnimplementedError(
                f"Parameter {name}: models keep no state between the requests of a sequence; "
                "a session does"
            )
    priority = parameters.get("priority")
    if priority is not None:
        step.priority = (
            priority if isinstance(priority, str) else whole_number(parameters, "priority")
        )
    timeout = whole_number(parameters, "timeout")
    if timeout:
        step.timeout_ms = -(-min(timeout, _LONGEST_US) // 1000)  # rounded up
