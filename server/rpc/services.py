"""rpc_services(): every gRPC service of the server in one table."""

from __future__ import annotations

from typing import Protocol

from server.access.access import Access
from server.lifecycle import Lifecycle
from server.memory_in_flight import MemoryInFlight
from server.rpc.call import Service
from server.rpc.master_service import MasterService
from server.sessions.service import SessionService
from server.settings import Settings

# The services of the port for TensorFlow's clients, which send no credentials.
TENSORFLOW_SERVICES = frozenset({"tensorflow.MasterService"})


class RpcServices(Protocol):
    """The services of one server that gRPC calls reach; `server.app.Services` has them."""

    @property
    def settings(self) -> Settings: ...  # noqa: D102 - as in Services
    @property
    def lifecycle(self) -> Lifecycle: ...  # noqa: D102
    @property
    def access(self) -> Access: ...  # noqa: D102
    @property
    def memory(self) -> MemoryInFlight: ...  # noqa: D102
    @property
    def sessions(self) -> SessionService: ...  # noqa: D102


def rpc_services(services: RpcServices) -> tuple[Service, ...]:
    """Return the services; their names and those of their methods are TensorFlow's."""
    master = MasterService(services.sessions, services.settings)
    return (Service("tensorflow.MasterService", master.methods()),)
