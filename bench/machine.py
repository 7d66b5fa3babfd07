"""What the figures of a run depend on: the processor, its load before the run, the versions."""

from __future__ import annotations

import datetime
import os
import pathlib
import platform
from typing import Any

from runtime.api import schedulable_cores

FEATURES = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile")


def describe() -> dict[str, Any]:
    """Return the machine, the day and the versions."""
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    fields = dict(
        (part.strip() for part in line.split(":", 1)) for line in text.splitlines() if ":" in line
    )
    flags = set(fields.get("flags", fields.get("Features", "")).split())
    return {
        "processor": fields.get("model name", platform.machine()),
        "features": [name for name in FEATURES if name in flags],
        "cores": schedulable_cores(),
        "load_before": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "day": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


def in_words(machine: dict[str, Any]) -> str:
    """Return the machine as part of a sentence."""
    return (
        f"{machine['cores']} cores of {machine['processor']} ({', '.join(machine['features'])}),"
        f" load {machine['load_before']} before the run, Python {machine['python']},"
        f" {machine['day']}"
    )
