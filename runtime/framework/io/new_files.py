"""Write files that appear under their names whole or not at all.

The contents go to a temporary file in the same folder, which is renamed when it is complete.
Therefore a full disk, an error or the end of the process leaves what was there before under the
final name. If the process is killed, a file with `.tempstate` in its name remains, which nothing
reads. Files are not synchronized with the disk, so they may be lost if the machine loses power.

TF: tensorflow/core/util/tensor_bundle/tensor_bundle.cc (`.tempstate`)
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from typing import IO, Self

from runtime.framework.io.file_errors import file_error

Data = bytes | bytearray | memoryview


class NewFile:
    """A file that is being written; a context manager.

    If the context is left before `rename` is called, the file is discarded. All methods raise the
    OpError of `file_error` if the system refuses.
    """

    def __init__(self, path: str) -> None:
        """Open the temporary file."""
        self.path = path
        self._temporary = f"{path}.tempstate{uuid.uuid4().hex}"
        try:
            self.file: IO[bytes] = open(self._temporary, "wb")  # noqa: SIM115 - closed by close
        except OSError as error:
            raise file_error(error, path) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # what can't be written is discarded
            self.file.close()
        with contextlib.suppress(OSError):  # there is no such file after `rename`
            os.unlink(self._temporary)

    def write(self, data: Data) -> None:
        """Append to the file."""
        try:
            self.file.write(data)
        except OSError as error:
            raise file_error(error, self.path) from None

    def complete(self) -> None:
        """Pass all data to the system; afterwards, only the renaming is left."""
        try:
            self.file.close()
        except OSError as error:
            raise file_error(error, self.path) from None

    def rename(self) -> None:
        """Give the file its name, in place of a file that has the name now."""
        self.complete()
        try:
            os.replace(self._temporary, self.path)
        except OSError as error:
            raise file_error(error, self.path) from None


def write_file(path: str, data: Data) -> None:
    """Write a file as `open(path, "wb").write(data)` does, but whole or not at all.

    A link is followed, and what is no regular file, a pipe for example, is written directly.
    Raises the OpError of `file_error`.
    """
    target = os.path.realpath(path)
    if os.path.exists(target) and not os.path.isfile(target):
        _write_directly(target, data)
        return
    with NewFile(target) as new:
        new.write(data)
        new.complete()
        if os.path.exists(target):
            with contextlib.suppress(OSError):  # the file has another owner
                shutil.copymode(target, new.file.name)
        new.rename()


def _write_directly(path: str, data: Data) -> None:
    try:
        with open(path, "wb", buffering=0) as file:
            _write_all(file, data)
    except OSError as error:
        raise file_error(error, path) from None


def append(file: IO[bytes], path: str, data: Data) -> None:
    """Append `data` whole to an unbuffered file that is open for appending.

    If the system refuses a part, the part that was written is removed, so that what follows is not
    damaged, and the OpError of `file_error` is raised.
    """
    try:
        before = os.fstat(file.fileno()).st_size
        try:
            _write_all(file, data)
        except OSError:
            with contextlib.suppress(OSError):  # no regular file
                os.truncate(file.fileno(), before)
            raise
    except OSError as error:
        raise file_error(error, path) from None


def _write_all(file: IO[bytes], data: Data) -> None:
    left = memoryview(data)
    while left:  # a write may take fewer bytes than given
        left = left[file.write(left) :]
