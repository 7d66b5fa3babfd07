"""Session factories: which one makes the session of a target."""

from __future__ import annotations

import pytest

from runtime.api import (
    AlreadyExistsError,
    InternalError,
    NotFoundError,
    SessionOptions,
    new_session,
)
from runtime.registrations import session_factories
from runtime.sessions.runtime_session import RuntimeSession
from runtime.sessions.session_factory import SessionFactory, SessionFactoryRegistry


class Accepting(SessionFactory):
    """Accepts one target."""

    def __init__(self, target: str) -> None:
        self.target = target

    def accepts_options(self, options: SessionOptions) -> bool:
        return options.target == self.target

    def new_session(self, options: SessionOptions) -> RuntimeSession:
        raise AssertionError("not called here")


@pytest.mark.parametrize("target", ["local", "foo://x", "abc"])
def test_a_target_that_nobody_accepts(target: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        new_session(SessionOptions(target))
    text = caught.value.message
    assert text.startswith("No session factory registered for the given session options: {target: ")
    assert (
        "Registered factories are {DIRECT_SESSION, GRPC_SESSION, HTTP_SESSION, RAY_SESSION}."
        in text
    )


def test_a_target_that_two_accept() -> None:
    registry = SessionFactoryRegistry()
    registry.register("ONE", Accepting("t"))
    registry.register("TWO", Accepting("t"))
    with pytest.raises(InternalError, match="Multiple session factories registered") as caught:
        registry.get_factory(SessionOptions("t"))
    assert "Candidate factories are {ONE, TWO}." in caught.value.message


def test_a_type_is_registered_once() -> None:
    registry = SessionFactoryRegistry()
    registry.register("ONE", Accepting("t"))
    with pytest.raises(AlreadyExistsError, match="registered under ONE"):
        registry.register("ONE", Accepting("u"))


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("", "DirectSessionFactory"),
        ("grpc://localhost:1", "RemoteSessionFactory"),
        ("http://localhost:1", "RemoteSessionFactory"),
        ("https://localhost:1", "RemoteSessionFactory"),
    ],
)
def test_targets_and_their_factories(target: str, name: str) -> None:
    factory = session_factories().get_factory(SessionOptions(target))
    assert type(factory).__name__ == name
