"""What the log says when a server starts: version, configuration, thread pools and models."""

from __future__ import annotations

import dataclasses
import logging
import os
import platform
from collections.abc import Iterator, Sequence

import numpy as np

from runtime.api import ThreadPool
from server.models.manager import ModelManager
from server.package import package_version
from server.settings import Settings
from server.settings_sources import Sources, unknown_variables
from server.steps.priorities import Priorities

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Start:
    """How a server was started: the sources of its settings, and sentences about its flags."""

    sources: Sources | str
    notes: Sequence[str] = ()


def log_start(
    start: Start, settings: Settings, priorities: Priorities, models: ModelManager
) -> None:
    """Log what is started, and what of the configuration has no effect."""
    _log.info(
        "Runstep %s (Python %s, numpy %s)",
        package_version(), platform.python_version(), np.__version__,
    )  # fmt: skip
    _log.info("Configuration: %s", start.sources)
    for note in start.notes:
        _log.warning("%s", note)
    for name in unknown_variables(type(settings), os.environ):
        _log.warning("Environment variable %s names no setting", name)
    _log.info("Thread pools: %s", "; ".join(_pools(priorities, settings)))
    names = models.model_names()
    if names:
        _log.info("Models: %s", ", ".join(names))
    else:
        _log.info("No models are configured; clients may open sessions")


def _pools(priorities: Priorities, settings: Settings) -> Iterator[str]:
    for pool in priorities.pools:
        served = [name for name, wanted in settings.priorities.items() if wanted.pool == pool.name]
        text = f" for priority {', '.join(served)}" if served else ""
        low = ", which yields" if pool.low_priority else ""
        yield f"{pool.name} with {_threads(pool)}{text}{low}"
    yield f"{priorities.load_pool.name} with {_threads(priorities.load_pool)} for loading models"


def _threads(pool: ThreadPool) -> str:
    text = f"{pool.num_threads} thread{'' if pool.num_threads == 1 else 's'}"
    if pool.intra_op_threads > 1:
        text += f" and up to {pool.intra_op_threads} for each kernel"
    return text
