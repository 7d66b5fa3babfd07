"""CSV datasets: restored iterators, files that the step may not read, files that change."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

from runtime.api import OpError, SessionOptions, new_session
from runtime.framework.dtypes import DataType
from runtime.framework.io.file_gate import FolderGate
from tests.conformance.cases.data.datasets import DatasetGraph
from tests.unit.runtime.kernels.data.saved_iterators import SavedIterator

STRING = DataType.STRING


def text(value: str) -> np.ndarray:
    return np.array(value.encode(), object)


def numbers(g: DatasetGraph, *files: pathlib.Path, header: bool = False) -> Any:
    """Return a dataset of the only column of the files, integers."""
    g.shapes = ((),)
    names = np.empty(len(files), object)
    names[:] = [str(each).encode() for each in files]
    return g.data(
        "CSVDataset", names, text(""), g.long(4096), np.bool_(header), text(","), np.bool_(True),
        text(""), np.zeros(0, np.int64), [np.zeros(1, np.int64)],
    )  # fmt: skip


@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize("taken", [0, 1, 3, 4])
def test_a_restored_iterator_goes_on_after_the_last_record(
    header: bool, taken: int, tmp_path: pathlib.Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"7\n1\r\n2\n3")
    second.write_bytes(b'8\n"4"\n5')
    expected = [1, 2, 3, 4, 5] if header else [7, 1, 2, 3, 8, 4, 5]
    g = DatasetGraph()
    iterator = SavedIterator(g, numbers(g, first, second, header=header))
    assert iterator.take(taken) == expected[:taken]
    saved = iterator.save()
    assert iterator.take(len(expected) - taken) == expected[taken:]
    iterator.restore(saved)
    assert iterator.take(len(expected) - taken) == expected[taken:]
    iterator.close()


def test_only_files_in_allowed_folders_are_read(tmp_path: pathlib.Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "table").write_bytes(b"1\n")
    (tmp_path / "table").write_bytes(b"2\n")
    g = DatasetGraph()
    attrs = {"output_types": g.types, "output_shapes": ((),)}
    for name, path in (("good", tmp_path / "inside" / "table"), ("bad", tmp_path / "table")):
        iterator = g.add("IteratorV2", shared_name=name, container="", **attrs)[0]
        g.add("MakeIterator", numbers(g, path), iterator, name=f"start_{name}")
        g.add("IteratorGetNext", iterator, name=name, **attrs)
    session = new_session(SessionOptions(files=FolderGate([str(tmp_path / "inside")])))
    session.create(g.graph_def)
    session.run({}, (), ("start_good", "start_bad"))
    assert session.run({}, ("good:0",)) == [1]
    with pytest.raises(OpError, match="This step may not read"):
        session.run({}, ("bad:0",))
    session.close()


def test_a_missing_file_is_an_error_at_each_call(tmp_path: pathlib.Path) -> None:
    g = DatasetGraph()
    iterator = SavedIterator(g, numbers(g, tmp_path / "table"))
    for _ in range(2):
        with pytest.raises(OpError, match="No such file or directory"):
            iterator.take(1)
    (tmp_path / "table").write_bytes(b"3\n")
    assert iterator.take(1) == [3]
    iterator.close()
