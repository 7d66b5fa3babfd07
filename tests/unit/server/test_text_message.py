"""Messages in text files."""

from __future__ import annotations

from pathlib import Path

import pytest

import protos as pb
from runtime.foundation.errors import InvalidArgumentError, NotFoundError, OpError
from server.text_message import read_text_message


def test_a_message_is_read(tmp_path: Path) -> None:
    file = tmp_path / "c"
    file.write_text("intra_op_parallelism_threads: 3 # three")
    assert read_text_message(file, pb.ConfigProto()).intra_op_parallelism_threads == 3


@pytest.mark.parametrize(
    ("content", "kind", "text"),
    [
        (None, NotFoundError, "cannot be read: No such file"),
        (b"\xff", InvalidArgumentError, "is not text"),
        (b"nope: 1", InvalidArgumentError, "Invalid protobuf file: .* has no field named"),
    ],
)
def test_files_that_are_no_message(
    content: bytes | None, kind: type[OpError], text: str, tmp_path: Path
) -> None:
    file = tmp_path / "c"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(kind, match=text):
        read_text_message(file, pb.ConfigProto())
