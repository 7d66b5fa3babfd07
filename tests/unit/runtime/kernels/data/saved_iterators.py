"""An iterator over a dataset of integers that is saved and restored."""

from __future__ import annotations

import numpy as np

from runtime.api import SessionOptions, new_session
from runtime.framework.dtypes import DataType
from tests.conformance.cases.data.datasets import DatasetGraph, Output


class SavedIterator:
    """A session with a started iterator of a dataset."""

    def __init__(self, g: DatasetGraph, dataset: Output) -> None:
        attrs = {"output_types": g.types, "output_shapes": g.shapes}
        iterator = g.add("IteratorV2", shared_name="it", container="", **attrs)[0]
        g.add("MakeIterator", dataset, iterator, name="start")
        g.add("IteratorGetNext", iterator, name="next", **attrs)
        g.add("SerializeTensor", g.add("SerializeIterator", iterator)[0], name="saved")
        text = g.placeholder(DataType.STRING, "text", ())
        parsed = g.add("ParseTensor", text, out_type=DataType.VARIANT)[0]
        g.add("DeserializeIterator", iterator, parsed, name="restore")
        self._session = new_session(SessionOptions())
        self._session.create(g.graph_def)
        self._session.run({}, (), ("start",))

    def take(self, count: int) -> list[int]:
        """Return the next `count` elements, each of which holds one integer."""
        return [int(self._session.run({}, ("next:0",))[0].item()) for _ in range(count)]

    def save(self) -> np.ndarray:
        """Return the state of the iterator, a serialised variant."""
        saved: np.ndarray = self._session.run({}, ("saved:0",))[0]
        return saved

    def restore(self, saved: np.ndarray) -> None:
        """Return to a saved state."""
        self._session.run({"text:0": saved}, (), ("restore",))

    def close(self) -> None:
        """Close the session."""
        self._session.close()
