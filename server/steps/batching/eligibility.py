"""Whether the steps of a signature may be batched, and if not, why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

Shape = Sequence[int] | None  # None: the rank is unknown; -1: the dimension is unknown


def reason_against(
    inputs: Mapping[str, Shape], outputs: Mapping[str, Shape], stateful_ops: Iterable[str]
) -> str | None:
    """Return why a signature must not be batched, or None if it may be.

    It may be if every input and output leads with an unknown dimension, and its step reaches no op
    that keeps or changes state.
    """
    if not inputs or not outputs:
        return f"it has no {'outputs' if inputs else 'inputs'}"
    for what, shapes in (("input", inputs), ("output", outputs)):
        for alias, shape in shapes.items():
            if shape is None:
                return f"the rank of {what} {alias!r} is unknown"
            if not shape:
                return f"{what} {alias!r} is a scalar"
            if shape[0] >= 0:
                return f"{what} {alias!r} leads with the known dimension {shape[0]}"
    ops = ", ".join(stateful_ops)
    return f"its step reaches ops that keep state: {ops}" if ops else None
