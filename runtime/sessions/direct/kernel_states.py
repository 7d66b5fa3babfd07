"""KernelStates: the part of a session that kernels have access to (`op_kernel.SessionState`)."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from runtime.devices.device import Device, DeviceSpec, parse_device_spec
from runtime.foundation.errors import InternalError, InvalidArgumentError
from runtime.framework.held_bytes import value_bytes
from runtime.framework.memory_account import SessionAccount
from runtime.framework.resource_manager import ResourceHandle, ResourceManager


class KernelStates:
    """A session's resources, the state that its kernels keep between steps, and its devices."""

    def __init__(
        self,
        resources: ResourceManager,
        session_handle: str,
        devices: Sequence[Device],
        memory: SessionAccount | None = None,
    ) -> None:
        """`memory` is the session's account; None if nothing limits its memory."""
        self.resources = resources
        self.kernel_state: dict[str, Any] = {}
        self.kernel_state_lock = threading.RLock()  # held while an entry is created
        self.session_handle = session_handle
        self.memory = memory
        self._devices = devices

    @property
    def bytes_held(self) -> int:
        """The bytes of the resources and of what kernels keep for their nodes."""
        states = list(self.kernel_state.values())
        kept = [each for each in states if not isinstance(each, ResourceHandle)]
        if not kept:
            return self.resources.bytes_held
        counted = {id(resource) for _, _, resource in self.resources}
        return self.resources.bytes_held + value_bytes(
            *(each for each in kept if id(each) not in counted)
        )

    def end(self, is_shared: bool) -> None:
        """Release the resources; if `is_shared` is true, keep those that other sessions can use."""
        if is_shared:
            for state in self.kernel_state.values():
                if isinstance(state, ResourceHandle):
                    self.resources.end_private(state)
        else:
            self.resources.clear()
        self.kernel_state.clear()

    @property
    def is_shareable(self) -> bool:
        """Whether kernels keep only resource handles, whose resources new sessions can share.

        Other state, for example a used random generator, can't be shared.
        """
        return all(isinstance(state, ResourceHandle) for state in self.kernel_state.values())

    def check_device(self, name: str) -> None:
        """Check that the session has the device `name`; "" means any device.

        Raises InvalidArgumentError if `name` is no valid device name, InternalError if the session
        does not have the device.
        """
        if not name:
            return
        spec = parse_device_spec(name if name.startswith("/") else f"/{name}")
        if spec is None:
            raise InvalidArgumentError(f"Could not parse {name} into a device specification.")
        if not any(spec.matches(device.spec) for device in self._devices):
            raise InternalError(
                f"Currently don't support instantiating functions on device: {_full_name(spec)}"
            )


def _full_name(spec: DeviceSpec) -> str:
    """Return the complete device name; if `spec` lacks a part, use the part of this task."""
    return (
        f"/job:{spec.job or 'localhost'}/replica:{spec.replica or 0}/task:{spec.task or 0}"
        f"/device:{spec.device_type or 'CPU'}:{spec.index or 0}"
    )
