"""Why an application does not serve is said in the words of its settings."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import pytest
from ray.exceptions import RayTaskError

from runtime.errors import OpError
from server.ray_models.deployment_names import FRONT, deployment_name
from server.settings import ModelSettings, Settings

with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # from Ray Serve itself
    from ray.serve.exceptions import RayServeException

    from server.ray_serve.reasons import failure, refusal, waiting, why

NAMES = ("digits", "a model")
SETTINGS = Settings(models=tuple(ModelSettings(name=name, base_path="/m") for name in NAMES))
DIGITS, OTHER = (deployment_name(name) for name in NAMES)
TRACEBACK = "The replica failed:\n  File x\nModelNotServedError: {}\n"


@dataclasses.dataclass
class Status:
    status: str = "UPDATING"
    message: str = ""
    replica_states: dict[str, int] = dataclasses.field(default_factory=dict)


def test_what_is_waited_for() -> None:
    deployments = {DIGITS: Status(), OTHER: Status("HEALTHY")}
    assert waiting(SETTINGS, deployments) == ["model digits"]


def test_what_is_known_of_what_does_not_serve_yet() -> None:
    assert why(SETTINGS, {}) == [
        "model digits: it has not started yet",
        "model a model: it has not started yet",
        "the fronts: it has not started yet",
    ]
    deployments = {
        DIGITS: Status(replica_states={"STARTING": 1, "RUNNING": 2}),
        OTHER: Status(message="No node has\n9 CPUs"),
        FRONT: Status(message=TRACEBACK.format("UNAVAILABLE: no port")),
    }
    assert why(SETTINGS, deployments) == [
        "model digits: 1 starting, 2 running",
        "model a model: No node has 9 CPUs",
        "the fronts: UNAVAILABLE: no port",
    ]
    healthy = dict.fromkeys((DIGITS, OTHER, FRONT), Status("HEALTHY"))
    assert why(SETTINGS, healthy) == []


def failed(text: str) -> Status:
    return Status("DEPLOY_FAILED", TRACEBACK.format(text))


@pytest.mark.parametrize(
    ("deployments", "expected"),
    [
        (
            {DIGITS: failed("NOT_FOUND: no folder"), FRONT: failed("UNAVAILABLE: no port")},
            "UNKNOWN: What does not serve: model digits: NOT_FOUND: no folder; "
            "the fronts: UNAVAILABLE: no port",
        ),
        ({FRONT: failed("UNAVAILABLE: no port")}, "UNAVAILABLE: The fronts do not serve: no port"),
        (
            {FRONT: Status("UNHEALTHY", "It\ndied")},
            "UNKNOWN: What does not serve: the fronts: It died",
        ),
        ({}, "INTERNAL: Ray Serve: all text"),
    ],
)
def test_what_failed(deployments: dict[str, Any], expected: str) -> None:
    assert text_of(failure(SETTINGS, deployments, "all\ntext")) == expected


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        (
            RuntimeError("Failed to bind to address '0.0.0.0:80'."),
            "UNAVAILABLE: Ray Serve cannot listen on 0.0.0.0:80 for HTTP: on a node the port is in "
            "use, or the address is not the node's (rest.host and rest.port)",
        ),
        (RayServeException("Paths are taken"), "FAILED_PRECONDITION: Ray Serve: Paths are taken"),
        (ValueError("a\nb"), "INTERNAL: Ray Serve: ValueError: a b"),
    ],
)
def test_what_does_not_begin(cause: Exception, expected: str) -> None:
    assert text_of(refusal(RayTaskError("ready", "", cause))) == expected


def text_of(error: OpError) -> str:
    return f"{error.code.name}: {error.message}"
