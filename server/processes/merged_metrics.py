"""The metrics of several processes as those of one server.

Values are added up, apart from ratios, of which the mean is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from prometheus_client.metrics_core import Metric

_RATIO = "_ratio"
# [name, description, type, [[name of the sample, {label: value}, value], …]]
WireFamily = list[Any]


def families_to_wire(families: Iterable[Metric]) -> list[WireFamily]:
    """Return metric families as JSON values."""
    return [
        [
            family.name,
            family.documentation,
            family.type,
            [[sample.name, sample.labels, sample.value] for sample in family.samples],
        ]
        for family in families
    ]


def merged_families(processes: Sequence[list[WireFamily]]) -> list[Metric]:
    """Return the families of all processes, in the order in which they first appear."""
    merged: dict[str, Metric] = {}
    values: dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], list[float]]] = {}
    for families in processes:
        for name, description, kind, samples in families:
            merged.setdefault(name, Metric(name, description, kind))
            of_family = values.setdefault(name, {})
            for sample_name, labels, value in samples:
                key = sample_name, tuple(labels.items())
                of_family.setdefault(key, []).append(value)
    for name, family in merged.items():
        for (sample_name, labels), seen in values[name].items():
            total = sum(seen)
            family.add_sample(
                sample_name, dict(labels), total / len(seen) if name.endswith(_RATIO) else total
            )
    return list(merged.values())
