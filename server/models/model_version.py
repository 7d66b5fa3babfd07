"""A loaded version of a model: its session, its signatures, and the number of its users.

Guarantees: thread-safe; once `close_when_unused` was called, `acquire` returns False, and the
callback runs exactly once, after the last `release`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Protocol

import protos as pb
from runtime.api import OpReport, RuntimeSession, SessionOptions, ShortStep
from runtime.errors import InvalidArgumentError, UnavailableError
from server.models.signature import (
    CLASSIFY_METHOD,
    PREDICT_METHOD,
    REGRESS_METHOD,
    Signature,
    signature_table,
)
from server.steps.batching.signature_batches import SignatureBatches
from server.steps.batching.timed_short_step import TimedShortStep

_PREDICTED = (PREDICT_METHOD, CLASSIFY_METHOD, REGRESS_METHOD)  # the methods that predict may run


class UnknownSignatureError(InvalidArgumentError):
    """The model has no signature of this name; the message is that of REST."""


class SavedModelBundle(Protocol):
    """The parts of a loaded SavedModel that are used here.

    TF: tensorflow/cc/saved_model/loader.h (SavedModelBundle)
    """

    @property
    def session(self) -> RuntimeSession:
        """The serving session, restored and initialised."""

    @property
    def meta_graph_def(self) -> pb.MetaGraphDef:
        """The meta graph that was loaded."""

    @property
    def report(self) -> OpReport:
        """The operations of the meta graph, and which of them are missing."""

    def open_session(self, options: SessionOptions) -> tuple[RuntimeSession, bool]:
        """Open a session in the state right after loading.

        Returns the session and whether it shares the loaded weights.
        """


class ModelVersion:
    """One version; predict, classify and regress run in the session of its bundle."""

    def __init__(
        self, name: str, version: int, bundle: SavedModelBundle, check_method_names: bool = False
    ) -> None:
        self.name = name
        self.version = version
        self._bundle: SavedModelBundle | None = bundle
        self.signatures: dict[str, Signature] = signature_table(bundle.meta_graph_def)
        for signature in self.signatures.values():
            signature.checks_method = check_method_names
        # The step of each signature, with all outputs; its feeds and fetches are in the order of
        # the aliases of the inputs and outputs. None if the session has no such steps.
        self.short_steps: dict[str, ShortStep | None] = {
            name: None
            if check_method_names and signature.method_name not in _PREDICTED
            else bundle.session.short_step(
                list(signature.feed_names.values()), list(signature.fetch_names.values())
            )
            for name, signature in self.signatures.items()
        }
        self.batches: Mapping[str, SignatureBatches] = {}  # by signature; empty without batching
        self._users: list[None] = []  # one for each use; append and pop are atomic
        self._on_unused: Callable[[], None] | None = None
        self._lock = threading.Lock()  # guards the call of _on_unused
        self._is_unused = False  # for good

    @property
    def bundle(self) -> SavedModelBundle:
        """The loaded SavedModel; raises UnavailableError once the version has been unloaded."""
        bundle = self._bundle
        if bundle is None:
            raise UnavailableError(f"Version {self.version} of {self.name} has been unloaded")
        return bundle

    @property
    def session(self) -> RuntimeSession:
        """The serving session, whose state persists between requests."""
        return self.bundle.session

    @property
    def in_flight(self) -> int:
        """The number of requests that use the version now."""
        return len(self._users)

    def signature(self, name: str) -> Signature:
        """Return the signature `name`; raise UnknownSignatureError if there is none.

        The message is TensorFlow Serving's, with the beginning of a long name.
        """
        found = self.signatures.get(name)
        if found is None:
            raise UnknownSignatureError(
                f'Serving signature name: "{name:.80}" not found in signature def'
            )
        found.check_method("prediction", *_PREDICTED)
        return found

    def set_batches(self, batches: Mapping[str, SignatureBatches]) -> None:
        """Set how steps are batched, before the version serves."""
        self.batches = batches
        for name, of_signature in batches.items():
            step = self.short_steps.get(name)
            if step is not None:
                is_allowed = of_signature.allows_short_step
                self.short_steps[name] = (
                    TimedShortStep(step, of_signature.note_run) if is_allowed else None
                )

    def acquire(self) -> bool:
        """Begin to use the version; return False if it is being unloaded."""
        # Whoever closes the version sets `_on_unused` before it looks for users, so that at least
        # one of the two notices the other.
        self._users.append(None)
        if self._on_unused is None:
            return True
        self.release()
        return False

    def release(self) -> None:
        """End a use that `acquire` began."""
        self._users.pop()
        if self._on_unused is not None:
            self._end_if_unused(self._on_unused)

    def _end_if_unused(self, on_unused: Callable[[], None]) -> None:
        with self._lock:
            if self._users or self._is_unused:
                return
            self._is_unused = True
        on_unused()

    def close_when_unused(self, on_unused: Callable[[], None]) -> None:
        """Refuse new users; call `on_unused` once no request uses the version."""
        self._on_unused = on_unused
        self._end_if_unused(on_unused)

    def close(self) -> None:
        """Close the serving session and drop the reference to the model."""
        bundle, self._bundle = self._bundle, None
        self.short_steps.clear()
        for batches in self.batches.values():
            batches.close()
        if bundle is not None:
            bundle.session.close()
