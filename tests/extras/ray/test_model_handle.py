"""What reads from a model is asked of a replica twice, and has a limit of time."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import pytest
from ray.exceptions import ActorUnavailableError

from runtime.errors import DeadlineExceededError, OpError, UnavailableError
from server.passed_calls import PassedRequest

with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # from Ray Serve itself
    from server.ray_models import model_handle
    from server.ray_models.model_handle import ModelHandle

GET = PassedRequest("GET", b"/v1/models/digits", [])
POST = PassedRequest("POST", b"/v1/models/digits:predict", [])
NEVER: Any = None
ENDED = ActorUnavailableError("it ends", None)


class Deployment:
    """A handle whose replicas answer in turn: with a text, with an error, or never."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.cancelled = 0
        self.call = self.rpc = self

    def remote(self, *_: Any) -> Deployment:
        """Begin a call."""
        return self

    def __await__(self) -> Any:
        return self._answer().__await__()

    async def _answer(self) -> tuple[int, Any]:
        answer = self._answers.pop(0)
        if answer is NEVER:
            await asyncio.get_running_loop().create_future()
        if isinstance(answer, Exception):
            raise answer
        return 0, answer

    def cancel(self) -> None:
        """Note that a call is cancelled."""
        self.cancelled += 1


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_handle, "_AGAIN_SECONDS", 0.02)
    monkeypatch.setattr(model_handle, "_READ_SECONDS", 0.1)


@pytest.mark.parametrize(("first", "cancelled"), [(NEVER, 1), (ENDED, 0)])
def test_another_replica_answers(first: Any, cancelled: int) -> None:
    deployment = Deployment(first, "status", first, "reply")
    model = ModelHandle("digits", deployment)
    assert asyncio.run(model.call(GET)) == "status"
    assert asyncio.run(model.rpc("/GetModelStatus", b"", [], None, reads=True)) == "reply"
    assert deployment.cancelled == 2 * cancelled


@pytest.mark.parametrize(
    ("seconds", "error"),
    [
        (None, UnavailableError),
        (60.0, UnavailableError),
        (0.05, DeadlineExceededError),
        (0.01, DeadlineExceededError),
    ],
)
def test_no_replica_answers(seconds: float | None, error: type[OpError]) -> None:
    deployment = Deployment(NEVER, NEVER)
    limit = min(seconds or 0.1, 0.1)
    with pytest.raises(
        error, match=f"^No replica of model digits has answered within {limit:g} s$"
    ):
        asyncio.run(ModelHandle("digits", deployment).call(GET, seconds))


def test_a_step_is_not_repeated() -> None:
    for answer, error in ((NEVER, DeadlineExceededError), (ENDED, UnavailableError)):
        deployment = Deployment(answer, "twice")
        model = ModelHandle("digits", deployment)
        with pytest.raises(error):
            asyncio.run(model.call(POST, 0.1))
        assert deployment.cancelled == (answer is NEVER)
