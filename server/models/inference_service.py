"""The inference service: predict, classify and regress on served models, for every front.

A front gives the inputs as arrays, or as the function that decodes them once the signature is
known, and writes the arrays that it gets back. Steps run in the version's one serving session,
whose state persists between requests.

TF: tensorflow_serving/servables/tensorflow/{predict,classification,regression}_*.cc
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from runtime.api import RuntimeSession
from server.models.example_signatures import (
    INPUTS,
    OUTPUTS,
    Classifications,
    check_classify_signature,
    check_regress_signature,
    classifications,
    classify_aliases,
    find_example_signature,
    regressions,
)
from server.models.manager import ModelManager
from server.models.model_version import ModelVersion
from server.models.serving_metrics import ServingMetrics
from server.models.signature import Signature
from server.steps.step_request import StepRequest
from server.steps.step_runner import StepRunner, off_loop

Tensors = Mapping[str, np.ndarray]  # by the signature's alias


class Prediction(NamedTuple):
    """The outputs by alias, the bytes of their content, and the version that computed them."""

    outputs: dict[str, np.ndarray]
    size: int
    version: int


class Classified(NamedTuple):
    """The classes of each example, the bytes of their content, and the version."""

    results: Classifications
    size: int
    version: int


class Regressed(NamedTuple):
    """The values, float32 `[number of examples]`, the bytes of them, and the version."""

    values: np.ndarray
    size: int
    version: int


class InferenceService:
    """What every front of served models calls; made once per server."""

    def __init__(self, manager: ModelManager, runner: StepRunner, metrics: ServingMetrics) -> None:
        self.manager = manager
        self.metrics = metrics
        self._runner = runner

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
        """Run a signature; `outputs` are the aliases to compute, by default all of them.

        `version` and `label` both None mean the latest version; `request.body_bytes` decides where
        the function `inputs` is called. Raises NotFoundError for a model or version that does not
        serve, InvalidArgumentError for an unknown label or signature and for missing or
        superfluous inputs, what `inputs` raises, and as `StepRunner.run`.
        """
        served = self.manager.acquire(name, version, label)
        try:
            session, found = served.session, served.signature(signature)
            tensors = (
                await off_loop(request.body_bytes, inputs, found) if callable(inputs) else inputs
            )
            aliases = outputs or found.output_aliases
            values, size = await self._run(
                "Predict", served, session, found, tensors, aliases, request
            )
        finally:
            served.release()
        return Prediction(dict(zip(aliases, values, strict=True)), size, served.version)

    async def classify(
        self,
        name: str,
        version: int | None,
        label: str | None,
        signature: str,
        inputs: np.ndarray | Callable[[], np.ndarray],
        request: StepRequest,
    ) -> Classified:
        """Labels and scores of serialized examples, a string tensor `[number of examples]`.

        Raises as `predict`, and InvalidArgumentError for a signature or an output of another form.
        """
        examples = await self._examples(name, inputs, request)
        served = self.manager.acquire(name, version, label)
        try:
            found = find_example_signature(served, signature, check_classify_signature)
            aliases = classify_aliases(found)
            values, size = await self._run(
                "Classify", served, served.session, found, {INPUTS: examples}, aliases, request
            )
        finally:
            served.release()
        results = classifications(dict(zip(aliases, values, strict=True)), len(examples))
        return Classified(results, size, served.version)

    async def regress(
        self,
        name: str,
        version: int | None,
        label: str | None,
        signature: str,
        inputs: np.ndarray | Callable[[], np.ndarray],
        request: StepRequest,
    ) -> Regressed:
        """A value for each serialized example; raises as `classify`."""
        examples = await self._examples(name, inputs, request)
        served = self.manager.acquire(name, version, label)
        try:
            found = find_example_signature(served, signature, check_regress_signature)
            values, size = await self._run(
                "Regress", served, served.session, found, {INPUTS: examples}, (OUTPUTS,), request
            )
        finally:
            served.release()
        return Regressed(regressions(values[0], len(examples)), size, served.version)

    async def _examples(
        self, name: str, inputs: np.ndarray | Callable[[], np.ndarray], request: StepRequest
    ) -> np.ndarray:
        examples = await off_loop(request.body_bytes, inputs) if callable(inputs) else inputs
        self.metrics.examples_received(name, len(examples))
        return examples

    async def _run(
        self,
        api: str,
        served: ModelVersion,
        session: RuntimeSession,
        signature: Signature,
        tensors: Tensors,
        aliases: Sequence[str],
        request: StepRequest,
    ) -> tuple[list[np.ndarray], int]:
        """The outputs of `aliases`, and the bytes of their content."""
        if tensors.keys() != signature.inputs.keys():
            signature.check_inputs(tensors.keys())
        request.feeds = {signature.feed_names[alias]: each for alias, each in tensors.items()}
        request.fetches = [signature.outputs[alias].name for alias in aliases]
        started = time.perf_counter()
        values, size = await self._runner.run(session, request)
        self.metrics.step_finished(served.name, api, time.perf_counter() - started)
        return list(map(np.asarray, values)), size
