"""Everything that is registered, in one place: session factories, device factories, kernels.

To add one, write its file and a row here. Registering the same thing twice raises.
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
from runtime.sessions.direct.direct_session_factory import DirectSessionFactory
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
    """The registry of all built-in kernels, each imported when a node first needs it."""
    return LazyKernelRegistry(KERNEL_MODULES)


@functools.cache
def device_factories() -> DeviceFactoryRegistry:
    """The registry of all device factories."""
    registry = DeviceFactoryRegistry()
    for device_type, factory, priority in DEVICE_FACTORIES:
        registry.register(device_type, factory(), priority)
    return registry


@functools.cache
def direct_session_factory() -> DirectSessionFactory:
    """The factory for the target ""."""
    return DirectSessionFactory(device_factories(), kernel_registry())


# (runtime type, function that returns the factory); exactly one factory may accept a target
SESSION_FACTORIES: tuple[tuple[str, Callable[[], SessionFactory]], ...] = (
    ("DIRECT_SESSION", direct_session_factory),
    ("GRPC_SESSION", grpc_session_factory),
    ("HTTP_SESSION", http_session_factory),
)


@functools.cache
def session_factories() -> SessionFactoryRegistry:
    """The registry of all session factories, by runtime type."""
    registry = SessionFactoryRegistry()
    for runtime_type, make in SESSION_FACTORIES:
        registry.register(runtime_type, make())
    return registry


def new_session(options: SessionOptions) -> RuntimeSession:
    """A session without a graph, made by the one factory that accepts the target.

    Raises NotFoundError when no factory accepts it, and what the factory raises.
    """
    return session_factories().get_factory(options).new_session(options)


def reset(target: str, containers: Sequence[str] = ()) -> None:
    """Clear resource containers of a target (all, when none is named) and close its sessions."""
    options = SessionOptions(target)
    session_factories().get_factory(options).reset(options, containers)
