"""Device scopes: `with graph.device(…)` requests a device for new operations.

TF: tensorflow/python/framework/device.py (merge_device), device_spec.py
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import threading
from collections.abc import Callable, Iterator

from runtime.client.framework.operation import Operation
from runtime.devices.device import DeviceSpec, parse_device_spec

DeviceFunction = Callable[[Operation], "str | None"]
_SHORT = re.compile(r"/(cpu|gpu)(:|/|$)", re.IGNORECASE)


class DeviceScopes:
    """For each thread, the device scopes that it has entered, outermost first."""

    def __init__(self) -> None:
        self._current = threading.local()

    @property
    def _stack(self) -> list[DeviceSpec | DeviceFunction | None]:
        if not hasattr(self._current, "stack"):
            self._current.stack = []
        stack: list[DeviceSpec | DeviceFunction | None] = self._current.stack
        return stack

    @contextlib.contextmanager
    def entered(self, device: str | DeviceFunction | None) -> Iterator[None]:
        """Request `device` for operations made inside; None ends the effect of all outer scopes.

        A string sets parts of the device name, which inner scopes can override. A function takes
        the operation and returns the whole name. Raises ValueError if a name is malformed.
        """
        self._stack.append(read_spec(device) if isinstance(device, str) else device)
        try:
            yield
        finally:
            self._stack.pop()

    def device_for(self, operation: Operation, explicit: str = "") -> str:
        """Return the device name to request for a new operation.

        The parts set in `explicit` override the parts set by the scopes.
        """
        spec = read_spec(explicit) if explicit else DeviceSpec()
        alone: str | None = None  # result of a device function, verbatim if no scope changes it
        for entry in reversed(self._stack):
            if entry is None:
                break
            if callable(entry):
                given = entry(operation) or ""
                alone = given if given and spec == DeviceSpec() else None
                entry = read_spec(given)
            elif entry != DeviceSpec():
                alone = None
            spec = merge(entry, spec)
        return device_text(spec) if alone is None else alone


def read_spec(device: str) -> DeviceSpec:
    """Split a device name into its parts. Raises ValueError if the name is malformed."""
    found = parse_device_spec(_SHORT.sub(_spell_out, device if device[:1] in "/" else f"/{device}"))
    if found is None:
        raise ValueError(
            f"Unknown attribute is encountered while parsing the device spec: '{device}'."
        )
    return found


def _spell_out(match: re.Match[str]) -> str:
    return f"/device:{match[1].upper()}{match[2]}"


def merge(outer: DeviceSpec, inner: DeviceSpec) -> DeviceSpec:
    """Return the parts of `inner`, with the parts that `inner` lacks taken from `outer`."""
    stated = {
        field.name: getattr(inner, field.name)
        for field in dataclasses.fields(inner)
        if getattr(inner, field.name) is not None
    }
    return dataclasses.replace(outer, **stated)


def device_text(spec: DeviceSpec) -> str:
    """Return the device name of a spec, or "" if no part is set."""
    parts = [("job", spec.job), ("replica", spec.replica), ("task", spec.task)]
    text = "".join(f"/{name}:{value}" for name, value in parts if value is not None)
    if spec.device_type is not None:
        text += f"/device:{spec.device_type}"
        text += f":{'*' if spec.index is None else spec.index}"
    return text
