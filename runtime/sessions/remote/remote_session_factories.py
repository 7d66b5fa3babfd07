"""The factories of remote sessions: targets `grpc://host:port` and `http(s)://host:port`.

The session's module is imported with the first such session. So a program that only runs graphs in
its own process, or a server that has to start quickly, does not load the gRPC and HTTP clients.

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
    """Makes sessions of `class_name` from `module` for targets with one of the schemes."""

    def __init__(self, schemes: tuple[str, ...], module: str, class_name: str) -> None:
        self._schemes = schemes
        self._module = module
        self._class_name = class_name

    def accepts_options(self, options: SessionOptions) -> bool:
        """Whether the target begins with one of this factory's schemes."""
        return options.target.startswith(self._schemes)

    def new_session(self, options: SessionOptions) -> RemoteSession:
        """Make a session; it connects to the server with its first graph or step."""
        session: RemoteSession = getattr(self._load(), self._class_name)(options)
        session_counts.session_created(session.runtime_type)
        return session

    def reset(self, options: SessionOptions, containers: Sequence[str]) -> None:
        """Clear the server's shared resource containers; raises the server's errors."""
        self._load().reset(options, containers)

    def _load(self) -> ModuleType:
        return importlib.import_module(self._module)


def grpc_session_factory() -> RemoteSessionFactory:
    """The factory of `grpc://` targets: a TensorFlow master service."""
    return RemoteSessionFactory(("grpc://",), "runtime.sessions.remote.grpc_session", "GrpcSession")


def http_session_factory() -> RemoteSessionFactory:
    """The factory of `http://` and `https://` targets: a Runstep server."""
    return RemoteSessionFactory(
        ("http://", "https://"), "runtime.sessions.remote.http_session", "HttpSession"
    )
