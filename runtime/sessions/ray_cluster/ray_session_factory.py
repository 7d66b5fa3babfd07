"""RaySessionFactory: makes the sessions whose target is `ray://auto` or `ray://HOST:GCS_PORT`.

Ray is imported when the first session is made; a program without such sessions does not need it.
"""

from __future__ import annotations

from types import ModuleType

from runtime.foundation.errors import FailedPreconditionError
from runtime.sessions.ray_cluster.ray_target import SCHEME
from runtime.sessions.remote.remote_session_factories import RemoteSessionFactory

_MODULE = "runtime.sessions.ray_cluster.ray_session"


class RaySessionFactory(RemoteSessionFactory):
    """Makes sessions on the nodes of a Ray cluster; raises what `RaySession` raises.

    Without Ray it raises FailedPreconditionError.
    """

    def __init__(self) -> None:
        super().__init__((SCHEME,), _MODULE, "RaySession")

    def _load(self) -> ModuleType:
        try:
            return super()._load()
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "ray":
                raise
            raise FailedPreconditionError(
                "Sessions on ray:// targets require the extra `ray`: pip install 'runstep[ray]'"
            ) from None


def ray_session_factory() -> RaySessionFactory:
    """Return the factory of sessions on a Ray cluster."""
    return RaySessionFactory()
