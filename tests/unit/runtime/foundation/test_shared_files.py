"""Files that processes share: made once, removed after the last use, whole or made anew."""

from __future__ import annotations

import concurrent.futures
import os
import pathlib
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from runtime.foundation.shared_files import HEADER_BYTES, SharedFile, SharedFiles

CONTENTS = b"abc" * 1000
SECONDS = 30
ENDS_WHILE_IT_MAKES = """
import os, pathlib, signal, sys
from runtime.foundation.shared_files import SharedFiles
files = SharedFiles()
files.use_folder(pathlib.Path(sys.argv[1]))
def make(descriptor, path):
    os.write(descriptor, b"begun")
    os.kill(os.getpid(), signal.SIGKILL)
files.open("a", make, lambda: None)
"""


@pytest.fixture
def files(tmp_path: pathlib.Path) -> SharedFiles:
    shared = SharedFiles()
    assert not shared.is_on
    shared.use_folder(tmp_path)
    assert shared.is_on
    return shared


def write(descriptor: int, _: pathlib.Path) -> None:
    os.write(descriptor, CONTENTS)


def never(_: int, path: pathlib.Path) -> None:
    raise AssertionError(f"{path} is made again")


def opened(
    files: SharedFiles,
    make: Callable[[int, pathlib.Path], None] = write,
    check: Callable[[], None] = lambda: None,
) -> SharedFile:
    return files.open("a", make, check)


def test_the_second_user_does_not_make_the_file(files: SharedFiles, tmp_path: pathlib.Path) -> None:
    first, second = opened(files), opened(files, never)
    assert first.contents() == second.contents() == CONTENTS
    mapping = second.mapped()
    assert mapping[HEADER_BYTES:] == CONTENTS
    with pytest.raises(TypeError):
        mapping[0] = 1
    first.release()
    assert (tmp_path / "a").exists()
    assert opened(files, never).contents() == CONTENTS
    del mapping


def test_the_last_user_removes_the_file_and_those_beside_it(
    files: SharedFiles, tmp_path: pathlib.Path
) -> None:
    def make(descriptor: int, path: pathlib.Path) -> None:
        write(descriptor, path)
        path.with_name("a.more").write_bytes(b"more")
        path.with_name("ab").write_bytes(b"of another name")

    first, second = opened(files, make), opened(files, never)
    mapping = first.mapped()
    second.release()
    assert (tmp_path / "a").exists()
    del mapping
    assert [path.name for path in tmp_path.iterdir()] == ["ab"]
    assert opened(files).contents() == CONTENTS  # made again


def test_what_could_not_be_made_is_not_there(files: SharedFiles, tmp_path: pathlib.Path) -> None:
    def make(descriptor: int, path: pathlib.Path) -> None:
        write(descriptor, path)
        path.with_name("a.more").write_bytes(b"more")
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        opened(files, make)
    assert list(tmp_path.iterdir()) == []
    opened(files).release()


def test_one_of_many_users_makes_the_file(files: SharedFiles, tmp_path: pathlib.Path) -> None:
    made = []

    def make(descriptor: int, path: pathlib.Path) -> None:
        made.append(path)
        write(descriptor, path)

    together = threading.Barrier(8)

    def use() -> bytes:
        together.wait(SECONDS)
        file = opened(files, make)
        contents = file.contents()
        together.wait(SECONDS)
        file.release()
        return contents

    for turn in range(1, 6):
        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            assert {done.result() for done in [threads.submit(use) for _ in range(8)]} == {CONTENTS}
        assert len(made) == turn
        assert list(tmp_path.iterdir()) == []


def test_users_that_come_and_go_always_get_a_whole_file(files: SharedFiles) -> None:
    def use() -> bytes:
        file = opened(files)
        contents = file.contents()
        file.release()
        return contents

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        assert {done.result() for done in [threads.submit(use) for _ in range(200)]} == {CONTENTS}


def test_a_wait_for_the_maker_can_be_ended(files: SharedFiles) -> None:
    begun, end = threading.Event(), threading.Event()

    def slow(descriptor: int, path: pathlib.Path) -> None:
        begun.set()
        assert end.wait(SECONDS)
        write(descriptor, path)

    def cancelled() -> None:
        raise InterruptedError("cancelled")

    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        maker = threads.submit(opened, files, slow)
        assert begun.wait(SECONDS)
        with pytest.raises(InterruptedError, match="cancelled"):
            opened(files, never, cancelled)
        end.set()
        file = maker.result(SECONDS)
    assert opened(files, never).contents() == CONTENTS
    file.release()


def test_a_maker_that_is_killed_leaves_nothing_in_the_way(
    files: SharedFiles, tmp_path: pathlib.Path
) -> None:
    ended = subprocess.run([sys.executable, "-c", ENDS_WHILE_IT_MAKES, str(tmp_path)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert (tmp_path / "a").exists()
    assert opened(files).contents() == CONTENTS
