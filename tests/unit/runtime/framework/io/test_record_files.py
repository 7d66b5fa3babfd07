"""Record files are closed when their reader is gone, wherever it stopped reading."""

from __future__ import annotations

import gc
import pathlib
from collections.abc import Callable
from typing import IO, Any

import numpy as np
import pytest

from runtime.client import Graph, Session, ops
from runtime.foundation.errors import DataLossError
from runtime.framework.dtypes import DataType
from runtime.framework.io import record_files
from runtime.framework.io.record_files import Records, fixed_length_records, text_lines


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[IO[bytes]]:
    """The files that were opened, in order."""
    files: list[IO[bytes]] = []
    original = record_files.open_records

    def watched(*arguments: Any) -> IO[bytes]:
        files.append(original(*arguments))
        return files[-1]

    monkeypatch.setattr(record_files, "open_records", watched)
    return files


def untouched(records: Records) -> None:
    assert records is not None


def begun(records: Records) -> None:
    assert next(records) == ("1", b"a")


def in_a_circle(records: Records) -> None:
    next(records)
    circle = [records, None]
    circle[1] = circle  # type: ignore[call-overload]


@pytest.mark.parametrize("use", [untouched, begun, in_a_circle])
def test_a_file_that_is_left_is_closed(
    use: Callable[[Records], None], opened: list[IO[bytes]], tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"a\nb\n")
    use(text_lines(str(path), 0))
    gc.collect()
    assert [file.closed for file in opened] == [True]


def test_an_iterator_closes_its_file_with_its_session(
    opened: list[IO[bytes]], tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"a\nb\n")
    graph = Graph()
    spec: dict[str, Any] = {"output_types": (DataType.STRING,), "output_shapes": ((),)}
    with graph.as_default():
        name, none = np.array(str(path).encode(), object), np.array(b"", object)
        dataset = ops.TextLineDataset(name, none, np.int64(0))
        iterator = ops.Iterator(shared_name="lines", container="", **spec)
        start = ops.MakeIterator(dataset, iterator)
        following = ops.IteratorGetNext(iterator, **spec)
    with Session(graph=graph) as session:
        session.run(start)
        assert session.run(following)[0] == b"a"
        assert [file.closed for file in opened] == [False]
    del session
    gc.collect()
    assert [file.closed for file in opened] == [True]


@pytest.mark.parametrize(
    ("read", "where"),
    [
        (lambda path: text_lines(path, 0, "GZIP"), "line 1"),
        (lambda path: fixed_length_records(path, 0, 1, 0, 0, "GZIP"), "0"),
    ],
    ids=["text_lines", "fixed_length_records"],
)
def test_damaged_compressed_data_is_lost(
    read: Callable[[str], Records], where: str, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "damaged"
    path.write_bytes(b"not gzip")
    with pytest.raises(DataLossError) as caught:
        next(read(str(path)))
    assert caught.value.message == f"corrupted record at {where}: Not a gzipped file (b'no')"
