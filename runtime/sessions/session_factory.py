"""SessionFactory, and the registry that chooses the factory for a target.

TF: tensorflow/core/common_runtime/session_factory.h, session.cc (NewSession)
"""

from __future__ import annotations

import abc
from collections.abc import Sequence

from runtime.foundation.errors import AlreadyExistsError, InternalError, NotFoundError
from runtime.sessions.runtime_session import RuntimeSession
from runtime.sessions.session_options import SessionOptions


class SessionFactory(abc.ABC):
    """Makes sessions for the targets that it accepts."""

    @abc.abstractmethod
    def accepts_options(self, options: SessionOptions) -> bool:
        """Return whether this factory makes sessions for `options.target`."""

    @abc.abstractmethod
    def new_session(self, options: SessionOptions) -> RuntimeSession:
        """Make a session without a graph."""

    def reset(self, options: SessionOptions, containers: Sequence[str]) -> None:
        """Clear resource containers and close the sessions that use them (TF: Session::Reset).

        Raises NotFoundError if the factory does not support `reset`.
        """
        raise NotFoundError("Reset is not supported by this session factory")


class SessionFactoryRegistry:
    """Factories by runtime type. `runtime.registrations` fills it; later it must not change."""

    def __init__(self) -> None:
        self._factories: dict[str, SessionFactory] = {}

    def register(self, runtime_type: str, factory: SessionFactory) -> None:
        """Add a factory; raise AlreadyExistsError if the runtime type has a factory."""
        if runtime_type in self._factories:
            raise AlreadyExistsError(
                f"Two session factories are being registered under {runtime_type}"
            )
        self._factories[runtime_type] = factory

    def get_factory(self, options: SessionOptions) -> SessionFactory:
        """Return the factory that accepts `options.target`.

        Raises NotFoundError if no factory accepts it, InternalError if several factories do.
        """
        candidates = {
            name: factory
            for name, factory in self._factories.items()
            if factory.accepts_options(options)
        }
        if len(candidates) == 1:
            return next(iter(candidates.values()))
        shown = f'{{target: "{options.target}" config: {_one_line(options)}}}'
        registered = f"Registered factories are {{{', '.join(self._factories)}}}."
        if not candidates:
            raise NotFoundError(
                f"No session factory registered for the given session options: {shown} {registered}"
            )
        raise InternalError(
            "Multiple session factories registered for the given session options: "
            f"{shown} Candidate factories are {{{', '.join(candidates)}}}. {registered}"
        )


def _one_line(options: SessionOptions) -> str:
    return " ".join(str(options.config).split())
