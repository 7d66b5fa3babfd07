"""Process-wide figures of clusters, for metrics."""

from __future__ import annotations

import dataclasses
import threading
import weakref
from collections.abc import Mapping
from typing import Protocol


class Form(Protocol):
    """A compiled form, of which only the size matters here."""

    @property
    def bytes_held(self) -> int:
        """The bytes of its arrays."""


@dataclasses.dataclass(slots=True)
class EngineFigures:
    """The compiled forms in memory that one engine has made in one precision."""

    forms: int = 0
    bytes_held: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterFigures:
    """What the clusters of the process have done and hold.

    `engines` has, by the name of an engine and its precision, those that have compiled a form.
    """

    compilations: int
    compile_seconds: float
    compile_failures: int
    refused_nodes: int
    run_failures: int
    forms: int  # compiled forms in memory
    bytes_held: int
    engines: Mapping[tuple[str, str], EngineFigures]


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterSummary:
    """One cluster of a compiled step."""

    nodes: int
    state: str  # observed, compiling, compiled or dissolved
    engine: str  # empty while numpy kernels run the cluster
    precision: str  # in which it computes with float32 tensors
    forms: int
    bytes_held: int
    compile_seconds: float  # of the forms that are in use


class ClusterCounts:
    """Counters of compilations and failures. All methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards all fields
        self._compilations = 0
        self._compile_seconds = 0.0
        self._compile_failures = 0
        self._refused_nodes = 0
        self._run_failures = 0
        # Form → the engine that has compiled it, and the precision.
        self._forms: weakref.WeakKeyDictionary[Form, tuple[str, str]] = weakref.WeakKeyDictionary()
        self._engines: set[tuple[str, str]] = set()

    def compiled(self, form: Form, seconds: float, engine: str, precision: str) -> None:
        """Count a compilation that took `seconds`; `form` counts as held until it is freed."""
        with self._lock:
            self._compilations += 1
            self._compile_seconds += seconds
            self._forms[form] = engine, precision
            self._engines.add((engine, precision))

    def compile_failed(self) -> None:
        """Count a compilation that failed."""
        with self._lock:
            self._compile_failures += 1

    def refused(self, nodes: int) -> None:
        """Count nodes that partition had chosen and emission refused."""
        with self._lock:
            self._refused_nodes += nodes

    def run_failed(self) -> None:
        """Count a run of a model that raised, after which numpy kernels ran."""
        with self._lock:
            self._run_failures += 1

    def figures(self) -> ClusterFigures:
        """Return the present figures."""
        with self._lock:
            engines = {each: EngineFigures() for each in sorted(self._engines)}
            for form, engine in list(self._forms.items()):
                engines[engine].forms += 1
                engines[engine].bytes_held += form.bytes_held
            return ClusterFigures(
                self._compilations,
                self._compile_seconds,
                self._compile_failures,
                self._refused_nodes,
                self._run_failures,
                sum(each.forms for each in engines.values()),
                sum(each.bytes_held for each in engines.values()),
                engines,
            )


cluster_counts = ClusterCounts()
