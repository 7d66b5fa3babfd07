"""What the figures of a run depend on: the processor, its load before the run, the versions."""

from __future__ import annotations

import datetime
import os
import pathlib
import platform
from collections.abc import Mapping
from typing import Any

from runtime.api import schedulable_cores

QUIET_LOAD = 0.5  # processes that want to run, a minute's mean
QUIET_STALLS = 0.002  # of the time of the cores
QUIET_SPREAD = 1.3  # of the middle 80 % of the runs of the reference product
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


def disturbance(machine: Mapping[str, Any], steps: Mapping[str, Any]) -> str | None:
    """Return why the figures of a run do not count, or None if the machine was quiet.

    `steps` are the figures of bench.step_times, {} if it did not run.
    """
    if machine["load_before"] > QUIET_LOAD:
        return f"the load before the run was {machine['load_before']:g}"
    if machine.get("stalled_share", 0) > QUIET_STALLS:
        return (
            f"its cores stood still for {machine['stalled_share']:.1%} of the time before the run"
        )
    gemm = steps.get("gemm_gflops", {"p10": 1, "p90": 1})
    if gemm["p90"] > QUIET_SPREAD * gemm["p10"]:
        return f"the speed of a matrix product varied from {gemm['p10']:.0f} to {gemm['p90']:.0f}"
    return None


def in_words(machine: dict[str, Any]) -> str:
    """Return the machine as part of a sentence."""
    return (
        f"{machine['cores']} cores of {machine['processor']} ({', '.join(machine['features'])}),"
        f" load {machine['load_before']} before the run, Python {machine['python']},"
        f" {machine['day']}"
    )
