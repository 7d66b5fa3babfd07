"""The factories of sessions whose target is `grpc://host:port` or `http(s)://host:port`.

A factory imports the module of its sessions when it makes the first session. So a program that only
runs graphs in its own process, or a server that must start quickly, loads no gRPC or HTTP client.

TF: tensorflow/core/distributed_runtime/rpc/grpc_session.cc (GrpcSessionFactory)
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from types import ModuleType

from runtime.sessions.remote.remote_session import RemoteSession
from runtime.sessions.session_counts import session_counts
from runtime.sessions.session_factory import SessionFactory
from runtime.sessions.session_options import SessionOptions


class RemoteSessionFactory(SessionFactory):
    """Makes sessions of `class_name` from `module` if a target begins with one of `schemes`."""

    def __init__(self, schemes: tuple[str, ...], module: str, class_name: str) -> None:
        self._schemes = schemes
        self._module = module
        self._class_name = class_name

    def accepts_options(self, options: SessionOptions) -> bool:
        """Return whether the target begins with one of this factory's schemes."""
        return options.target.startswith(self._schemes)

    def new_session(self, options: SessionOptions) -> RemoteSession:
        """Make a session, which connects to the server when it gets its first graph or step."""
        session: RemoteSession = getattr(self._load(), self._class_name)(options)
        session_counts.session_created(session.runtime_type)
        return session

    def reset(self, options: SessionOptions, containers: Sequence[str]) -> None:
        """Clear the server's shared resource containers; raise the errors of the server."""
        self._load().reset(options, containers)

    def _load(self) -> ModuleType:
        return importlib.import_module(self._module)


def grpc_session_factory() -> RemoteSessionFactory:
    """Return the factory of sessions on a TensorFlow master service, for `grpc://` targets."""
    return RemoteSessionFactory(("grpc://",), "runtime.sessions.remote.grpc_session", "GrpcSession")


def http_session_factory() -> RemoteSessionFactory:
    """Return the factory of sessions on a Runstep server, for `http(s)://` targets."""
    return RemoteSessionFactory(
        ("http://", "https://"), "runtime.sessions.remote.http_session", "HttpSession"
    )
