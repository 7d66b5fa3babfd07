"""serve: one process of a server, from its settings to its exit code."""

from __future__ import annotations

import contextlib
import logging
import math
import socket

import uvicorn

from runtime.api import (
    ignore_float_errors,
    keep_freed_memory,
    keep_model_objects_apart,
    share_processors_among_runs,
)
from runtime.errors import FailedPreconditionError
from server.access.exposure import exposure
from server.app import create_app, make_services
from server.background.background_settings import low_priorities, with_background_port
from server.background.front_host import FrontHost
from server.connections.connection_limits import raise_descriptor_limit
from server.connections.http_protocol import HttpProtocol
from server.host import ALONE, Host
from server.log import configure_logging
from server.models.freed_memory import collect_less_often
from server.process.draining_server import CLOSING_SECONDS, DrainingServer
from server.process.shared_ports import SharedPorts
from server.processes.host_table import HostTable
from server.processes.http_sockets import http_sockets
from server.processes.reserved_port import check_ports
from server.processes.worker_host import WorkerHost
from server.settings import Settings
from server.start_log import Start, log_start
from server.tls import read_tls_files, rpc_tls, server_options

_log = logging.getLogger(__name__)


def serve(settings: Settings, start: Start | None, ports: SharedPorts | None = None) -> int:
    """Serve until a signal, and return the exit code; `start` is None if the log has it already.

    `ports` is given in one of several processes.
    """
    configure_logging(settings.log.level, settings.log.format)
    if ports is not None:
        return _serve(settings, start, ports)
    with with_background_port(settings) as numbered:
        return _serve(numbered, start, None)


def _serve(settings: Settings, start: Start | None, ports: SharedPorts | None) -> int:
    collect_less_often()
    keep_freed_memory()
    keep_model_objects_apart()
    ignore_float_errors()
    share_processors_among_runs()
    warning = exposure(settings)
    if warning is not None and start is not None:
        _log.warning("%s", warning)
    read_tls_files(settings.tls)  # raises if a file is wrong
    rpc_tls(settings).read()
    raise_descriptor_limit()
    if ports is None:
        check_ports(settings)
    host = _host(settings, ports)
    if isinstance(host, WorkerHost):
        host.background_priorities = low_priorities(settings)
    services = make_services(settings, host=host)
    if start is not None:
        log_start(start, settings, services.priorities, services.models)
    server = DrainingServer(
        uvicorn.Config(
            create_app(services),
            http=HttpProtocol,
            ws="none",
            timeout_keep_alive=max(1, math.ceil(settings.rest.keep_alive_seconds)),
            lifespan="on",
            log_config=None,  # see server/log.py
            access_log=False,  # see server/middleware.py
            server_header=False,
            timeout_graceful_shutdown=CLOSING_SECONDS,
            **server_options(settings.tls),
        ),
        services,
        ports,
    )
    with contextlib.ExitStack() as stack:
        listeners: list[socket.socket] = []
        # Those of several processes are none of uvicorn's: see server/processes/shared_listener.py.
        if settings.rest.port != 0 and ports is None:
            port = 0 if settings.rest.port == "free" else settings.rest.port
            listeners = http_sockets(stack, settings.rest.host, port)
        server.run(sockets=listeners)
    if isinstance(host, WorkerHost):
        if host.removes_sockets(is_orphan=server.is_orphan):
            host.remove_sockets()
        else:
            host.remove_own_sockets()
    return 0 if server.started and not server.has_failed else 1


def _host(settings: Settings, ports: SharedPorts | None) -> Host:
    """Return what serves with this process; raise the error of a Ray cluster without a way in."""
    if ports is not None:
        return ports.host
    if settings.placement == "local":
        return FrontHost(HostTable.create(1)) if low_priorities(settings) else ALONE
    try:
        from server.ray_sessions.ray_host import RayHost
    except ImportError:
        raise FailedPreconditionError(
            "placement is ray, which requires the extra: pip install 'runstep[ray]'"
        ) from None
    host = RayHost(settings)
    host.connect()
    return host
