"""Queries of database files: statements that are refused, and errors."""

from __future__ import annotations

import dataclasses
import gc
import os
import pathlib
import sqlite3

import pytest

from runtime.api import OpError, new_session
from runtime.foundation.errors import Code
from runtime.framework.dtypes import DataType
from tests.conformance.cases.data.sql_datasets import Query
from tests.conformance.test_cases import options

SELECTED = Query("one", "select id from things", (DataType.INT64,))


@pytest.fixture
def database(tmp_path: pathlib.Path) -> str:
    """A file with a table of two rows."""
    path = str(tmp_path / "a b?#.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute("create table things (id integer)")
        connection.executemany("insert into things values (?)", [(3,), (4,)])
    connection.close()
    return path


def first_row(query: Query) -> int:
    """The first element of the query; raises the errors of the session."""
    case = query.case()
    session = new_session(options("DEFAULT"))
    session.create(case.graph)
    begin, row, *_ = case.steps
    session.run(begin.feeds, begin.fetches, begin.targets)
    return int(session.run(row.feeds, row.fetches, row.targets)[0])


def test_a_path_may_hold_any_character(database: str) -> None:
    assert first_row(dataclasses.replace(SELECTED, database=database)) == 3


@pytest.mark.parametrize(
    "query",
    [
        "insert into things values (5)",
        "delete from things",
        "drop table things",
        "attach database '{other}' as other",
        "vacuum into '{other}'",
        "pragma writable_schema = 1",
    ],
)
def test_a_query_only_selects(database: str, tmp_path: pathlib.Path, query: str) -> None:
    other = tmp_path / "other.sqlite"
    asked = dataclasses.replace(SELECTED, database=database, query=query.format(other=other))
    with pytest.raises(OpError) as caught:
        first_row(asked)
    assert caught.value.code == Code.UNKNOWN
    assert "Prepare() failed: [23] " in caught.value.message
    assert not other.exists()
    assert first_row(dataclasses.replace(SELECTED, database=database)) == 3


def test_an_abandoned_iterator_closes_its_file_without_the_collector(database: str) -> None:
    gc.disable()
    try:
        assert first_row(dataclasses.replace(SELECTED, database=database)) == 3
        assert database not in open_files()
    finally:
        gc.enable()


def open_files() -> list[str]:
    """The paths of the files that this process has open."""
    folder = pathlib.Path("/proc/self/fd")
    return [os.readlink(each) for each in folder.iterdir() if each.is_symlink()]


def test_a_file_that_is_not_there_is_not_made(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "missing.sqlite"
    with pytest.raises(OpError) as caught:
        first_row(dataclasses.replace(SELECTED, database=str(path)))
    assert caught.value.code == Code.NOT_FOUND
    assert f"{path}; No such file or directory" in caught.value.message
    assert not path.exists()


def test_a_file_that_is_no_database_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "text"
    path.write_text("words, and no database: " * 100)
    with pytest.raises(OpError) as caught:
        first_row(dataclasses.replace(SELECTED, database=str(path)))
    assert "failed: [26] file is not a database" in caught.value.message
