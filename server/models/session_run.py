"""SessionRun: run any tensors and operations of a served model, in its serving session.

The session is the one in which the version serves everybody. A step that may change its state is
therefore an act of administration: an assignment to a variable would change every prediction.

TF: tensorflow_serving/apis/session_service.proto
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from runtime.api import DirectSession, RunRequest
from runtime.errors import InvalidArgumentError, PermissionDeniedError
from server.models.administration import Administration
from server.models.inference_service import InferenceService
from server.models.model_version import ModelVersion
from server.models.request_log import LoggedRequest
from server.steps.step_request import StepRequest
from server.steps.step_runner import read_in_time


class SessionRunResult(NamedTuple):
    """The fetched values, the number of bytes in them, and the version that computed them."""

    values: list[Any]
    size: int
    version: int


@dataclasses.dataclass(frozen=True, slots=True)
class SessionRun:
    """The call of served models."""

    service: InferenceService
    administration: Administration

    async def run(
        self,
        name: str,
        version: int | None,
        label: str | None,
        signature: str | None,
        feeds: Callable[[], Mapping[str, np.ndarray]],
        fetches: Sequence[str],
        request: StepRequest,
    ) -> SessionRunResult:
        """Run a step with the targets of `request`.

        `feeds` decodes the fed tensors. If `signature` is given, names are aliases of its inputs
        and outputs; a name that is neither is an error, and targets are not translated. Raises
        NotFoundError if the model or version does not serve, InvalidArgumentError if a signature or
        an alias is unknown, PermissionDeniedError if the step may have a lasting effect and the
        caller may not administer the server, and the errors of `feeds` and `StepRunner.run`.
        """
        served = self.service.manager.acquire(name, version, label)
        try:
            found = None if signature is None else served.signature(signature)
            tensors = await read_in_time(request.body_bytes, request, None, feeds)
            if found is None:
                request.feeds, request.fetches = tensors, fetches
            else:
                names = _tensor_names("input", found.name, found.feed_names, tensors)
                request.feeds = dict(zip(names, tensors.values(), strict=True))
                request.fetches = _tensor_names("output", found.name, found.fetch_names, fetches)
            await self._check_effect(served, request)
            values, size = await self.service.run_step(served, request)
            if self.service.logs(name):
                outputs = dict(zip(fetches, map(np.asarray, values), strict=True))
                self.service.log(
                    LoggedRequest(
                        "SessionRun", name, served.version, signature, tensors, outputs,
                        tuple(request.targets),
                    )
                )  # fmt: skip
        finally:
            served.release()
        return SessionRunResult(values, size, served.version)

    async def _check_effect(self, served: ModelVersion, request: StepRequest) -> None:
        """Raise PermissionDeniedError if the caller may not run the step."""
        try:
            self.administration.check(request.caller)
            return
        except PermissionDeniedError as error:
            refusal = error
        run = RunRequest(request.feeds, request.fetches, request.targets)
        session = served.session
        # Looking may compile the step, which takes long.
        if isinstance(session, DirectSession) and not await asyncio.to_thread(
            session.has_lasting_effect, run
        ):
            return
        raise PermissionDeniedError(
            f"The step may change the state in which model {served.name} serves everybody. "
            f"{refusal.message}"
        )


def _tensor_names(
    kind: str, signature: str, names: Mapping[str, str], aliases: Iterable[str]
) -> list[str]:
    found = []
    for alias in aliases:
        if alias not in names:
            raise InvalidArgumentError(
                f"Signature {signature} has no {kind} {alias}; it has {{{','.join(names)}}}"
            )
        found.append(names[alias])
    return found
