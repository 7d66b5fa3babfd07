"""The registries of the runtime: session factories, device factories and kernels.

To add a factory, write its class and add a row to a table of this file. A row that occurs twice
raises AlreadyExistsError.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from runtime.devices.device_factory import (
    THREAD_POOL_PRIORITY,
    DeviceFactory,
    DeviceFactoryRegistry,
)
from runtime.devices.thread_pool_device import ThreadPoolDeviceFactory
from runtime.framework.kernel_registry import KernelRegistry
from runtime.kernels import KERNEL_MODULES
from runtime.kernels.lazy_registry import LazyKernelRegistry
from runtime.sessions.argument_types import check_type
from runtime.sessions.direct.direct_session_factory import DirectSessionFactory
from runtime.sessions.ray_cluster.ray_session_factory import ray_session_factory
from runtime.sessions.remote.remote_session_factories import (
    grpc_session_factory,
    http_session_factory,
)
from runtime.sessions.runtime_session import RuntimeSession
from runtime.sessions.session_factory import SessionFactory, SessionFactoryRegistry
from runtime.sessions.session_options import SessionOptions

# (device type, factory, priority)
DEVICE_FACTORIES: tuple[tuple[str, type[DeviceFactory], int], ...] = (
    ("CPU", ThreadPoolDeviceFactory, THREAD_POOL_PRIORITY),
)


@functools.cache
def kernel_registry() -> KernelRegistry:
    """Return the registry of built-in kernels; a module is imported when a node first needs it."""
    return LazyKernelRegistry(KERNEL_MODULES)


@functools.cache
def device_factories() -> DeviceFactoryRegistry:
    """Return the registry of all device factories."""
    registry = DeviceFactoryRegistry()
    for device_type, factory, priority in DEVICE_FACTORIES:
        registry.register(device_type, factory(), priority)
    return registry


@functools.cache
def direct_session_factory() -> DirectSessionFactory:
    """Return the factory of the sessions whose target is ""."""
    return DirectSessionFactory(device_factories(), kernel_registry())


# (runtime type, function that makes the factory); no two factories may accept the same target
SESSION_FACTORIES: tuple[tuple[str, Callable[[], SessionFactory]], ...] = (
    ("DIRECT_SESSION", direct_session_factory),
    ("GRPC_SESSION", grpc_session_factory),
    ("HTTP_SESSION", http_session_factory),
    ("RAY_SESSION", ray_session_factory),
)


@functools.cache
def session_factories() -> SessionFactoryRegistry:
    """Return the registry of all session factories, whose key is the runtime type."""
    registry = SessionFactoryRegistry()
    for runtime_type, make in SESSION_FACTORIES:
        registry.register(runtime_type, make())
    return registry


def new_session(options: SessionOptions) -> RuntimeSession:
    """Make a session without a graph, by the factory that accepts `options.target`.

    Raises NotFoundError if no factory accepts the target, and what the factory raises.
    """
    check_type("The argument of new_session", options, SessionOptions)
    return session_factories().get_factory(options).new_session(options)


def reset(target: str, containers: Sequence[str] = ()) -> None:
    """Clear `containers` of a target, or all its containers if empty, and close its sessions."""
    options = SessionOptions(target)
    session_factories().get_factory(options).reset(options, containers)
