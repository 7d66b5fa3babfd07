"""DecodeProtoV2 on files of descriptors, on damaged descriptors and messages, and on deep ones."""

from __future__ import annotations

import pathlib
import types
from typing import Any

import numpy as np
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from runtime.foundation.errors import (
    DataLossError,
    InvalidArgumentError,
    OpError,
    PermissionDeniedError,
    ResourceExhaustedError,
)
from runtime.framework import allocation
from runtime.framework.dtypes import DataType
from runtime.framework.io.file_gate import FolderGate
from runtime.kernels.io.memory_needs import MEMORY_NEEDS
from runtime.kernels.io.proto_decoding import decode_proto
from tests.conformance.cases.io.proto_messages import SOURCE, delimited, descriptors, tag, varint


def context(folders: tuple[str, ...] = ()) -> Any:
    step = types.SimpleNamespace(files=FolderGate(list(folders)))
    return types.SimpleNamespace(step=step, kernel_state=lambda make: make())


def attributes(names: list[str], kinds: list[DataType], **changes: Any) -> dict[str, Any]:
    source = changes.pop("source", SOURCE)
    text = source.decode("utf-8", "surrogateescape") if isinstance(source, bytes) else source
    return {
        "message_type": "shop.Order", "field_names": names, "output_types": kinds,
        "descriptor_source": text, "message_format": "binary", "sanitize": False, **changes,
    }  # fmt: skip


def decode(
    messages: list[bytes], *names: str, folders: tuple[str, ...] = (), **changes: Any
) -> Any:
    given = np.empty(len(messages), object)
    given[:] = messages
    kinds = changes.pop("kinds", [DataType.INT32] * len(names))
    return decode_proto(context(folders), given, **attributes(list(names), kinds, **changes))


def test_descriptors_of_a_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "shop.pb"
    path.write_bytes(descriptors())
    found = decode([tag(5, 0) + b"\7"], "i32", folders=(str(tmp_path),), source=str(path))
    assert [each.tolist() for each in found] == [[[1]], [[7]]]


def test_a_file_outside_the_folders_is_not_read(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "shop.pb"
    path.write_bytes(descriptors())
    with pytest.raises(PermissionDeniedError):
        decode([b""], "i32", folders=(str(tmp_path / "other"),), source=str(path))


def test_damaged_descriptors_are_refused_or_decode() -> None:
    random, whole = np.random.default_rng(1), descriptors()
    refused = 0
    for _ in range(300):
        data = bytearray(whole)
        for place in random.integers(0, len(data), 3):
            data[place] = random.integers(256)
        cut = int(random.integers(len(data)))
        for damaged in (bytes(data), bytes(data[:cut])):
            try:
                sizes, _ = decode([tag(5, 0) + b"\7"], "i32", source=b"bytes://" + damaged)
            except InvalidArgumentError:
                refused += 1
            else:
                assert sizes.shape == (1, 1)
    assert refused > 300


def test_files_that_import_what_is_missing_are_refused() -> None:
    files = FileDescriptorSet.FromString(descriptors())
    files.file[0].dependency.append("missing.proto")
    with pytest.raises(InvalidArgumentError, match="Failed to load FileDescriptorProto"):
        decode([b""], "i32", source=b"bytes://" + files.SerializeToString())


def test_damaged_messages_are_data_loss_or_decode() -> None:
    random = np.random.default_rng(2)
    whole = b"".join(
        (tag(5, 0) + varint(-1), delimited(45, b"\1\2\3"), delimited(29, b"abc"),
         tag(10, 3) + tag(1, 0) + b"\5" + tag(10, 4), tag(1, 1) + b"\0" * 8)
    )  # fmt: skip
    names = ["i32", "pi32", "rs", "g", "d"]
    kinds = [DataType.INT32] * 2 + [DataType.STRING] * 2 + [DataType.DOUBLE]
    outcomes = set()
    for _ in range(500):
        data = bytearray(whole[: random.integers(1, len(whole) + 1)])
        data[random.integers(len(data))] = random.integers(256)
        try:
            found = decode([bytes(data)], *names, kinds=kinds)
        except OpError as error:
            assert isinstance(error, DataLossError)
            outcomes.add("refused")
        else:
            assert len(found) == 6
            outcomes.add("decoded")
    assert outcomes == {"refused", "decoded"}


@pytest.mark.parametrize("number", [10, 77])
def test_deep_groups_are_refused(number: int) -> None:
    deep = tag(number, 3) * 100_000 + tag(number, 4) * 100_000
    with pytest.raises(DataLossError):
        decode([deep], "g", kinds=[DataType.STRING])


def test_deep_messages_are_refused_when_parsed() -> None:
    deep = b""
    for _ in range(1000):
        deep = delimited(11, deep)
    with pytest.raises(DataLossError, match="Unable to parse binary protobuf"):
        decode([deep], "m", kinds=[DataType.STRING], sanitize=True, message_type="shop.Tree",
               source=tree())  # fmt: skip


def test_deep_text_is_refused() -> None:
    text = b"m {" * 100_000 + b"}" * 100_000
    with pytest.raises(DataLossError, match="Unable to parse text protobuf"):
        decode([text], "m", kinds=[DataType.STRING], message_format="text",
               message_type="shop.Tree", source=tree())  # fmt: skip


def tree() -> bytes:
    """Return descriptors of a message that contains itself."""
    files = FileDescriptorSet.FromString(descriptors())
    message = files.file[0].message_type.add(name="Tree")
    field = message.field.add(name="m", number=11, type="TYPE_MESSAGE", label="LABEL_OPTIONAL")
    field.type_name = ".shop.Tree"
    return b"bytes://" + files.SerializeToString()


def test_one_long_list_among_many_messages_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocation, "_limit", [1 << 20])
    messages = [delimited(45, b"\1" * 10_000), *[b""] * 1000]
    with pytest.raises(ResourceExhaustedError):
        decode(messages, "pi32")


def test_the_memory_of_large_batches_is_counted() -> None:
    text = b"x" * 10_000  # one value of a message, of which as many bytes could be numbers
    given = np.array([delimited(9, text)] * 2000, object)
    options = attributes(["s", "i32"], [DataType.STRING, DataType.INT32])
    need: Any = MEMORY_NEEDS["DecodeProtoV2"]
    assert need(context(), given, **options) < 200 * len(text) * len(given)
