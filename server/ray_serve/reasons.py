"""Why an application does not serve, in the words of its settings.

`deployments` are Ray Serve's `DeploymentStatusOverview` by the names of deployments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ray.exceptions import RayTaskError
from ray.serve.exceptions import RayServeException

from runtime.errors import (
    Code,
    FailedPreconditionError,
    InternalError,
    OpError,
    UnavailableError,
    UnknownError,
    error_for_code,
)
from server.ray_models.deployment_names import FRONT, deployment_name
from server.settings import Settings

FAILED = ("DEPLOY_FAILED", "UNHEALTHY")
_LONGEST = 400  # characters of Ray Serve's own text in a message
# The end of a traceback: the code and the message of an error of this program.
_REASON = re.compile(r"ModelNotServedError: ((?:([A-Z_]+): )?(.+))")
_NO_PORT = re.compile(r"Failed to bind to address '([^']+)'")


def waiting(settings: Settings, deployments: Mapping[str, Any]) -> list[str]:
    """Return what has begun to start and does not serve yet."""
    return [
        text
        for key, text in _names(settings)
        if key in deployments and deployments[key].status != "HEALTHY"
    ]


def why(settings: Settings, deployments: Mapping[str, Any]) -> list[str]:
    """Return what does not serve yet, each with what is known of it."""
    return [
        f"{text}: {_state(deployments.get(key))}"
        for key, text in _names(settings)
        if key not in deployments or deployments[key].status != "HEALTHY"
    ]


def failure(settings: Settings, deployments: Mapping[str, Any], told: str) -> OpError:
    """Return the error of a deployment that failed; `told` is Ray Serve's text of all.

    It is that of the fronts if only they fail, and otherwise UnknownError with each reason.
    """
    reasons: list[str] = []
    for key, text in _names(settings):
        if key not in deployments or deployments[key].status not in FAILED:
            continue
        message = deployments[key].message
        found = _REASON.search(message)
        if found and found[2] in Code.__members__ and key == FRONT and not reasons:
            # They are the last in order, so that no model has failed.
            return error_for_code(Code[found[2]], f"The fronts do not serve: {found[3].strip()}")
        reason = found[1].strip() if found else _line(message)[-_LONGEST:]
        reasons.append(f"{text}: {reason}")
    if reasons:
        return UnknownError(f"What does not serve: {'; '.join(reasons)}")
    return InternalError(f"Ray Serve: {_line(told)[:_LONGEST]}")


def refusal(error: Exception) -> OpError:
    """Return the error of what Ray Serve does not begin."""
    cause = error.cause if isinstance(error, RayTaskError) else error
    if isinstance(cause, RayServeException):  # such as: another application has the paths
        return FailedPreconditionError(f"Ray Serve: {cause}")
    if taken := _NO_PORT.search(str(cause)):
        return UnavailableError(
            f"Ray Serve cannot listen on {taken[1]} for HTTP: on a node the port is in use, or the "
            "address is not the node's (rest.host and rest.port)"
        )
    return InternalError(f"Ray Serve: {type(cause).__name__}: {_line(str(cause))[:_LONGEST]}")


def _names(settings: Settings) -> Iterator[tuple[str, str]]:
    for model in settings.models:
        yield deployment_name(model.name), f"model {model.name}"
    yield FRONT, "the fronts"


def _state(status: Any) -> str:
    if status is None:
        return "it has not started yet"
    if found := _REASON.search(status.message):
        return found[1].strip()
    if status.message:
        return _line(status.message)[:_LONGEST]
    counts = {getattr(key, "value", key): num for key, num in status.replica_states.items()}
    starting, running = counts.get("STARTING", 0), counts.get("RUNNING", 0)
    if starting:
        return f"{starting} starting, {running} running"
    return "it has not started yet"


def _line(text: str) -> str:
    return " ".join(text.split())
