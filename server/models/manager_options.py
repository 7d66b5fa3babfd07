"""The options of a ModelManager: the loader, the load pool, retries, labels and warm-up."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from server.models.load_metrics import LoadMetrics
from server.models.model_version import ModelVersion, SavedModelBundle
from server.settings import ModelLoadingSettings
from server.steps.batching.signature_batches import SignatureBatches

Loader = Callable[[str, int, Path], SavedModelBundle]  # (model, version, folder)
# Takes a version and its folder; returns the batches by signature. Raises if a file is wrong.
BatchesOf = Callable[[ModelVersion, Path], Mapping[str, SignatureBatches]]


class LoadPool(Protocol):
    """Runs loads and unloads: a ThreadPool, or a substitute in tests."""

    def schedule(self, task: Callable[[], object]) -> None:
        """Run `task` soon; raise ResourceExhaustedError if that is not possible."""


@dataclasses.dataclass(frozen=True, slots=True)
class ManagerOptions:
    """Retries of failed loads, labels of versions that do not serve yet, warm-up and batching.

    TF: `--max_num_load_retries`, `--load_retry_interval_micros`,
    `--allow_version_labels_for_unavailable_models`, `--enable_model_warmup`,
    `--num_request_iterations_for_warmup`, `--enable_signature_method_name_check`
    """

    max_load_retries: int = 5
    load_retry_seconds: float = 60
    allow_labels_for_unavailable: bool = False
    warmup: bool = True
    warmup_seconds: float = 300  # the longest time for the recorded requests of one version
    warmup_iterations: int = 1
    check_method_names: bool = False
    batches_of: BatchesOf | None = None  # None: nothing is batched
    metrics: LoadMetrics = dataclasses.field(default_factory=LoadMetrics)


def manager_options(
    settings: ModelLoadingSettings,
    batches_of: BatchesOf | None = None,
    metrics: LoadMetrics | None = None,
) -> ManagerOptions:
    """Convert the settings to ManagerOptions."""
    return ManagerOptions(
        settings.max_retries,
        settings.retry_seconds,
        settings.allow_labels_for_unavailable,
        settings.warmup,
        settings.warmup_seconds,
        settings.warmup_iterations,
        settings.check_method_names,
        batches_of,
        metrics or LoadMetrics(),
    )
