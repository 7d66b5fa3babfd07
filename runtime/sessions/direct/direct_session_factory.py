"""DirectSessionFactory: makes the sessions whose target is "".

TF: tensorflow/core/common_runtime/direct_session.cc (DirectSessionFactory)
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence

import protos as pb
from runtime.devices.device_factory import DeviceFactoryRegistry
from runtime.foundation.blas_threads import limit_blas_threads
from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.kernel_registry import KernelRegistry
from runtime.sessions.direct.direct_session import RUNTIME_TYPE, DirectSession
from runtime.sessions.direct.session_pools import make_session_pools
from runtime.sessions.direct.session_template import SessionTemplate
from runtime.sessions.session_counts import session_counts
from runtime.sessions.session_factory import SessionFactory
from runtime.sessions.session_options import SessionOptions


class DirectSessionFactory(SessionFactory):
    """Makes direct sessions; tracks the live ones for `reset` and for unique session metadata."""

    def __init__(self, devices: DeviceFactoryRegistry, kernels: KernelRegistry) -> None:
        self._devices = devices
        self._kernels = kernels
        self._lock = threading.Lock()  # guards _sessions
        self._sessions: weakref.WeakSet[DirectSession] = weakref.WeakSet()

    def accepts_options(self, options: SessionOptions) -> bool:
        """Return whether the target is empty."""
        return options.target == ""

    def new_session(self, options: SessionOptions) -> DirectSession:
        """Make a session without a graph; the first one limits BLAS to one thread.

        Raises NotFoundError if there is no CPU device. Raises InvalidArgumentError if a global pool
        exists with another size, if an open session has the same session metadata, or if
        RUNSTEP_BLAS_THREADS has no valid value.
        """
        return self._new_session(options, None)

    def open_template(
        self, options: SessionOptions, template: SessionTemplate
    ) -> DirectSession | None:
        """Make a session from a template; return None if the template has no resources."""
        return None if template.resources is None else self._new_session(options, template)

    def _new_session(
        self, options: SessionOptions, template: SessionTemplate | None
    ) -> DirectSession:
        limit_blas_threads()
        devices = self._devices.add_devices(options.config)
        kernels = template.kernels if template is not None else self._kernels
        if options.kernels:
            kernels = KernelRegistry(options.kernels, fallback=kernels)
        resources = None
        if template is not None and template.resources is not None:
            resources = template.resources.fork()
            if resources is not None:
                resources.template = template.resources
        with self._lock:
            self._check_metadata(options.config)
            pools = make_session_pools(options.config)
            try:
                session = DirectSession(options, devices, pools, kernels, template, resources)
            except BaseException:
                pools.shutdown()
                raise
            self._sessions.add(session)
        # This ends the session's threads if it is garbage-collected before `destroy` is called.
        weakref.finalize(session, pools.shutdown).atexit = False
        session_counts.session_created(RUNTIME_TYPE)
        return session

    def _check_metadata(self, config: pb.ConfigProto) -> None:
        """Check the session metadata of a new session.

        Raises InvalidArgumentError if the version is negative or if an open session has the same
        metadata.
        """
        if not config.experimental.HasField("session_metadata"):
            return
        metadata = config.experimental.session_metadata
        if metadata.version < 0:
            raise InvalidArgumentError(f"Session version shouldn't be negative: {metadata}")
        for session in self._sessions:
            other = session.options.config.experimental
            if session.is_closed or not other.HasField("session_metadata"):
                continue
            if other.session_metadata == metadata:
                raise InvalidArgumentError(
                    f"A session with the same name and version has already been created: {metadata}"
                )

    def reset(self, options: SessionOptions, containers: Sequence[str]) -> None:
        """Clear `containers`, or all containers if it is empty, and close all open sessions."""
        with self._lock:
            sessions = list(self._sessions)
        for session in sessions:
            if containers:
                for container in containers:
                    session.resources.clear(container)
            else:
                session.resources.clear()
            session.close()
