"""Everything that is registered, in one place: session factories, device factories, kernels.

To add one, write its file and a row here. Registering the same thing twice raises.
"""

from __future__ import annotations

import functools

from runtime.devices.device_factory import (
    THREAD_POOL_PRIORITY,
    DeviceFactory,
    DeviceFactoryRegistry,
)
from runtime.devices.thread_pool_device import ThreadPoolDeviceFactory
from runtime.framework.kernel_registry import KernelRegistry
from runtime.kernels import kernel_defs
from runtime.sessions.direct_session_factory import DirectSessionFactory
from runtime.sessions.runtime_session import RuntimeSession
from runtime.sessions.session_factory import SessionFactoryRegistry
from runtime.sessions.session_options import SessionOptions

# (device type, factory, priority)
DEVICE_FACTORIES: tuple[tuple[str, type[DeviceFactory], int], ...] = (
    ("CPU", ThreadPoolDeviceFactory, THREAD_POOL_PRIORITY),
)


@functools.cache
def kernel_registry() -> KernelRegistry:
    """Every built-in kernel."""
    return KernelRegistry(kernel_defs())


@functools.cache
def device_factories() -> DeviceFactoryRegistry:
    """Every device factory."""
    registry = DeviceFactoryRegistry()
    for device_type, factory, priority in DEVICE_FACTORIES:
        registry.register(device_type, factory(), priority)
    return registry


@functools.cache
def direct_session_factory() -> DirectSessionFactory:
    """The factory for the target ""."""
    return DirectSessionFactory(device_factories(), kernel_registry())


@functools.cache
def session_factories() -> SessionFactoryRegistry:
    """Every session factory, by runtime type."""
    registry = SessionFactoryRegistry()
    registry.register("DIRECT_SESSION", direct_session_factory())
    return registry


def new_session(options: SessionOptions) -> RuntimeSession:
    """A session without a graph, made by the one factory that accepts the target.

    Raises NotFoundError when no factory accepts it, and what the factory raises.
    """
    return session_factories().get_factory(options).new_session(options)
