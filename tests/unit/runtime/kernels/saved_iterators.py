"""An iterator over a dataset of integers that is saved and restored."""

from __future__ import annotations

import numpy as np

from runtime.api import SessionOptions, new_session
from runtime.framework.dtypes import DataType
from tests.conformance.cases.data.datasets import DatasetGraph, Output


class SavedIterator:
    """A session with an iterator of a graph's dataset, started."""

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
        """The next elements."""
        return [int(self._session.run({}, ("next:0",))[0]) for _ in range(count)]

    def save(self) -> np.ndarray:
        """Where it stands, as text."""
        saved: np.ndarray = self._session.run({}, ("saved:0",))[0]
        return saved

    def restore(self, saved: np.ndarray) -> None:
        """Go back to where it stood."""
        self._session.run({"text:0": saved}, (), ("restore",))

    def close(self) -> None:
        """Close the session."""
        self._session.close()
