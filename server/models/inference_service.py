"""The inference service: predict, classify and regress on served models.

The REST and gRPC endpoints pass the inputs as arrays, or as a function that decodes them once the
signature is known, and write the arrays that are returned. Steps run in the serving session of the
version, whose state persists between requests.

TF: tensorflow_serving/servables/tensorflow/{predict,classification,regression}_*.cc
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from runtime.api import ShortStep
from server.metrics import Distribution
from server.models.example_signatures import (
    INPUTS,
    OUTPUTS,
    Classifications,
    classifications,
    classify_outputs,
    find_example_signature,
    regress_outputs,
    regressions,
)
from server.models.manager import ModelManager
from server.models.model_version import ModelVersion
from server.models.request_log import LoggedRequest, RequestLog
from server.models.serving_metrics import ServingMetrics
from server.models.signature import Signature
from server.steps.step_request import StepRequest
from server.steps.step_runner import BY_ELEMENT, ShortAnswer, StepRunner, read_in_time

Tensors = Mapping[str, np.ndarray]  # maps the aliases of a signature to arrays


class Prediction(NamedTuple):
    """The outputs by alias, the number of bytes in them, and the version that computed them."""

    outputs: dict[str, np.ndarray]
    size: int
    version: int


class Classified(NamedTuple):
    """The classes and scores of each example, the number of bytes in them, and the version."""

    results: Classifications
    size: int
    version: int


class Regressed(NamedTuple):
    """The values, float32 `[number of examples]`, the number of bytes in them, and the version."""

    values: np.ndarray
    size: int
    version: int


class InferenceService:
    """The service that every endpoint of served models calls; there is one for each server."""

    def __init__(
        self,
        manager: ModelManager,
        runner: StepRunner,
        metrics: ServingMetrics,
        request_log: RequestLog | None = None,
    ) -> None:
        self.manager = manager
        self.metrics = metrics
        self._request_log = request_log
        self._runner = runner
        self.step_metrics = runner.metrics
        self._predict_times: dict[str, Distribution] = {}  # of `metrics`, by model

    async def predict(
        self,
        name: str,
        version: int | None,
        label: str | None,
        signature: str,
        inputs: Tensors | Callable[[Signature], Tensors],
        request: StepRequest,
        outputs: Sequence[str] = (),
    ) -> Prediction:
        """Run a signature; `outputs` are the aliases to compute, by default all outputs.

        If `version` and `label` are None, the latest version is used. If `inputs` is a function, it
        is called on another thread if `request.body_bytes` is large. Raises NotFoundError if the
        model or version does not serve, InvalidArgumentError if the label or signature is unknown
        or if inputs are missing or superfluous, the errors of `inputs`, and the errors of
        `StepRunner.run`.
        """
        values, size, number = await self._run(
            "Predict", name, version, label, signature, inputs, request, outputs
        )
        return Prediction(values, size, number)

    def short_step(
        self, served: ModelVersion, signature: str, *, is_new: bool = True
    ) -> ShortStep | None:
        """Return the step for `predict_short`, or None if `predict` must be used.

        That is so if the step is not short, if it should wait for the others that arrive at the
        same time, or if the requests on the model are logged. `is_new` is whether the request is
        seen for the first time.
        """
        step = served.short_steps.get(signature)
        if step is None or not step.may_run or self.manager.request_log_of(served.name):
            return None
        batches = served.batches.get(signature) if served.batches else None
        if batches is not None and (batches.arrives() if is_new else batches.is_crowded):
            return None
        return step

    def predict_short(
        self, name: str, step: ShortStep, inputs: Sequence[np.ndarray]
    ) -> ShortAnswer | None:
        """Run the short step of a signature of model `name`, in this thread.

        `inputs` and the values returned are in the order of the signature's aliases. Returns None,
        without having run anything, if the step is not short; `predict` must then be used. Raises
        what `StepRunner.run_short` raises.
        """
        answer = self._runner.run_short(step, inputs, name)
        if answer is not None:
            times = self._predict_times.get(name)
            if times is None:
                times = self._predict_times[name] = self.metrics.steps(name, "Predict")
            times.add(answer[2] * 1e6)
        return answer

    async def prediction(
        self, served: ModelVersion, signature: Signature, values: list[Any]
    ) -> Prediction:
        """Return the outputs of `predict_short` by alias, as `predict` does."""
        _, size = await self._runner.limited(values)
        return Prediction(
            dict(zip(signature.outputs, map(np.asarray, values), strict=True)),
            size,
            served.version,
        )

    async def classify(
        self,
        name: str,
        version: int | None,
        label: str | None,
        signature: str,
        inputs: np.ndarray | Callable[[], np.ndarray],
        request: StepRequest,
    ) -> Classified:
        """Return labels and scores of serialized examples, a string tensor `[number of examples]`.

        Raises the same errors as `predict`, and InvalidArgumentError if the signature or an output
        does not have the form that classify requires.
        """
        examples = await self.examples(name, inputs, request)
        values, size, number = await self._run(
            "Classify", name, version, label, signature, {INPUTS: examples}, request,
            choose_outputs=classify_outputs,
        )  # fmt: skip
        return Classified(classifications(values, len(examples)), size, number)

    async def regress(
        self,
        name: str,
        version: int | None,
        label: str | None,
        signature: str,
        inputs: np.ndarray | Callable[[], np.ndarray],
        request: StepRequest,
    ) -> Regressed:
        """Return a value for each serialized example; raise the same errors as `classify`."""
        examples = await self.examples(name, inputs, request)
        values, size, number = await self._run(
            "Regress", name, version, label, signature, {INPUTS: examples}, request,
            choose_outputs=regress_outputs,
        )  # fmt: skip
        return Regressed(regressions(values[OUTPUTS], len(examples)), size, number)

    def has_child(self, request: StepRequest, named: str | None) -> bool:
        """Do as `StepRunner.has_child`."""
        return self._runner.has_child(request, named)

    async def run_step(self, served: ModelVersion, request: StepRequest) -> tuple[list[Any], int]:
        """Run the feeds and fetches of `request` in the session of a version that is in use.

        Returns the fetched values and the number of bytes in them; raises what `StepRunner.run`
        raises.
        """
        request.model = served.name
        return await self._runner.run(served.session, request)

    def logs(self, name: str) -> bool:
        """Return whether a request on model `name`, which has succeeded, is to be logged."""
        return self._request_log is not None and self._request_log.samples(name)

    def log(self, request: LoggedRequest) -> None:
        """Log a request; its arrays must not change any more."""
        if self._request_log is not None:
            self._request_log.add(request)

    async def examples(
        self, name: str, inputs: np.ndarray | Callable[[], np.ndarray], request: StepRequest
    ) -> np.ndarray:
        """Return serialized examples, which `inputs` may have to decode, and count them."""
        size = request.body_bytes * BY_ELEMENT
        examples = await read_in_time(size, request, None, inputs) if callable(inputs) else inputs
        if self.manager.is_configured(name):  # no label for names that clients make up
            self.metrics.examples_received(name, len(examples))
        return examples

    async def _run(
        self,
        api: str,
        name: str,
        version: int | None,
        label: str | None,
        signature: str,
        inputs: Tensors | Callable[[Signature], Tensors],
        request: StepRequest,
        outputs: Sequence[str] = (),
        choose_outputs: Callable[[Signature], Sequence[str]] | None = None,
    ) -> tuple[dict[str, np.ndarray], int, int]:
        """Run a signature; return the outputs by alias, the number of bytes in them, the version.

        `choose_outputs` must be given for classify and regress. It raises if the signature does not
        take examples, and returns the aliases to fetch.
        """
        served = self.manager.acquire(name, version, label)
        try:
            session = served.session
            if choose_outputs is None:
                found = served.signature(signature)
                aliases = outputs or found.output_aliases
            else:
                found = find_example_signature(served, signature)
                aliases = choose_outputs(found)
            tensors = inputs
            if callable(tensors):
                tensors = await read_in_time(request.body_bytes, request, None, tensors, found)
            if tensors.keys() != found.inputs.keys():
                found.check_inputs(tensors.keys())
            names = map(found.feed_names.__getitem__, tensors)
            request.feeds = dict(zip(names, tensors.values(), strict=True))
            request.fetches = list(map(found.fetch_names.__getitem__, aliases))
            request.model = name
            started = time.perf_counter()
            batches = served.batches.get(found.name) if served.batches else None
            values, size = await self._runner.run(session, request, batches=batches)
            self.metrics.steps(name, api).add((time.perf_counter() - started) * 1e6)
        finally:
            served.release()
        arrays = dict(zip(aliases, map(np.asarray, values), strict=True))
        if self.logs(name):
            self.log(LoggedRequest(api, name, served.version, signature, tensors, arrays))
        return arrays, size, served.version
