"""MultiInference: classify and regress the same examples by several signatures, in one step.

TF: tensorflow_serving/servables/tensorflow/multi_inference.cc
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from runtime.errors import InvalidArgumentError, UnimplementedError
from server.models.example_signatures import (
    INPUTS,
    OUTPUTS,
    Classifications,
    classifications,
    classify_outputs,
    regress_outputs,
    regressions,
)
from server.models.inference_service import InferenceService
from server.models.model_version import ModelVersion
from server.models.signature import Signature
from server.steps.step_request import StepRequest

CLASSIFY, REGRESS = "tensorflow/serving/classify", "tensorflow/serving/regress"
_OUTPUTS_OF = {CLASSIFY: classify_outputs, REGRESS: regress_outputs}


class Task(NamedTuple):
    """One task: a signature of model `name`, and the method, CLASSIFY or REGRESS."""

    name: str
    signature: str
    method: str


class MultiInferred(NamedTuple):
    """The results in the order of the tasks: regressions are float32 `[number of examples]`.

    `size` is the number of bytes in the results, and `version` the version that computed them.
    """

    results: list[Classifications | np.ndarray]
    size: int
    version: int


@dataclasses.dataclass(frozen=True, slots=True)
class MultiInference:
    """The call of served models."""

    service: InferenceService

    async def run(
        self,
        tasks: Sequence[Task],
        version: int | None,
        label: str | None,
        inputs: Callable[[], np.ndarray],
        request: StepRequest,
    ) -> MultiInferred:
        """Run all tasks in one step of the version that the first task means.

        `inputs` decodes the serialized examples. Raises NotFoundError if the model or version does
        not serve; InvalidArgumentError if the tasks name several models or a signature twice, a
        signature is unknown or has not the form that its method requires; UnimplementedError for
        another method; and the errors of `inputs` and `StepRunner.run`.
        """
        name = tasks[0].name
        served = self.service.manager.acquire(name, version, label)
        try:
            outputs = _outputs_of(served, tasks)
            examples = await self.service.examples(name, inputs, request)
            signatures = [served.signatures[task.signature] for task in tasks]
            request.feeds = {each.feed_names[INPUTS]: examples for each in signatures}
            wanted = [
                [signature.fetch_names[alias] for alias in aliases]
                for signature, aliases in zip(signatures, outputs, strict=True)
            ]
            request.fetches = sorted({tensor for tensors in wanted for tensor in tensors})
            values, size = await self.service.run_step(served, request)
        finally:
            served.release()
        by_name = dict(zip(request.fetches, map(np.asarray, values), strict=True))
        results = [
            _result(
                task.method,
                {alias: by_name[tensor] for alias, tensor in zip(aliases, tensors, strict=True)},
                len(examples),
            )
            for task, aliases, tensors in zip(tasks, outputs, wanted, strict=True)
        ]
        return MultiInferred(results, size, served.version)


def _outputs_of(served: ModelVersion, tasks: Sequence[Task]) -> list[tuple[str, ...]]:
    """Return the aliases of the outputs of each task."""
    seen: set[str] = set()
    outputs = []
    for task in tasks:
        if not task.name:
            raise InvalidArgumentError("Found ModelSpec with an empty model name.")
        if task.name != tasks[0].name:
            raise InvalidArgumentError(
                "All ModelSpecs in a MultiInferenceRequest must access the same model name."
            )
        if task.signature in seen:
            raise InvalidArgumentError(f"Duplicate evaluation of signature: {task.signature}")
        seen.add(task.signature)
        outputs.append(_outputs(task, served.signatures.get(task.signature)))
    return outputs


def _outputs(task: Task, signature: Signature | None) -> tuple[str, ...]:
    if signature is None:
        raise InvalidArgumentError(
            f"Requested signature not found in model graph: {task.signature}"
        )
    outputs_of = _OUTPUTS_OF.get(task.method)
    if outputs_of is None:
        raise UnimplementedError(f"Unsupported signature method_name: {task.method}")
    return outputs_of(signature)


def _result(
    method: str, outputs: dict[str, np.ndarray], num_examples: int
) -> Classifications | np.ndarray:
    if method == CLASSIFY:
        return classifications(outputs, num_examples)
    return regressions(outputs[OUTPUTS], num_examples)
