"""The metrics of processes on several machines on one page: the samples of each have its labels.

Nothing is added up, and a process writes its own text, so that a page of many processes is joined
without reading it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from prometheus_client.metrics_core import Metric

from server.metrics import exposition_of

# By the name of a family: the lines that describe it, and those of its samples.
MetricsText = dict[str, tuple[str, str]]

# What a process counts of calls that a front has counted when it received them.
OF_THE_FRONT = frozenset({"runstep_requests", "runstep_request_seconds", "runstep_rpc_errors"})


def labelled_text(
    families: Iterable[Metric], labels: Mapping[str, str], without: Container[str] = ()
) -> MetricsText:
    """Return the text of families, with additional labels before those of each sample."""
    texts: MetricsText = {}
    for family in families:
        if family.name in without:
            continue
        labelled = Metric(family.name, family.documentation, family.type)
        for sample in family.samples:
            labelled.add_sample(sample.name, {**labels, **sample.labels}, sample.value)
        lines = exposition_of([labelled]).decode().split("\n")
        end = next((n for n, line in enumerate(lines) if not line.startswith("#")), len(lines))
        texts[family.name] = "".join(f"{line}\n" for line in lines[:end]), "\n".join(lines[end:])
    return texts


def joined_page(processes: Sequence[MetricsText]) -> bytes:
    """Return a page in Prometheus's text format with the metrics of all processes."""
    described: dict[str, str] = {}
    samples: dict[str, list[str]] = {}
    for texts in processes:
        for name, (description, lines) in texts.items():
            described.setdefault(name, description)
            samples.setdefault(name, []).append(lines)
    return "".join(
        part for name, text in described.items() for part in (text, *samples[name])
    ).encode()
