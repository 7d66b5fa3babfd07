"""The wire messages: generated code is fresh, field numbers are TensorFlow's, Any unpacks."""

from __future__ import annotations

import importlib
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from google.protobuf import any_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

import protos as pb

ROOT = pathlib.Path(__file__).parent.parent.parent


def test_generated_code_is_fresh(tmp_path: pathlib.Path) -> None:
    """Compares descriptors, so that any protoc will do."""
    names = sorted(f"protos/{path.name}" for path in (ROOT / "protos").glob("*.proto"))
    assert names
    target = tmp_path / "all.pb"
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I.", f"--descriptor_set_out={target}"]
    subprocess.run([*command, *names], cwd=ROOT, check=True)
    compiled = {file.name: file for file in FileDescriptorSet.FromString(target.read_bytes()).file}
    for name in names:
        module = importlib.import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
        generated = FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
        fresh = compiled[name]
        for message in _messages(fresh):  # protoc fills in what generated code leaves out
            for field in message.field:
                field.ClearField("json_name")
        assert generated == fresh, f"run `make protos`: {name}"


def _messages(container: Any) -> Iterator[Any]:
    nested = getattr(container, "message_type", None) or getattr(container, "nested_type", ())
    for message in nested:
        yield message
        yield from _messages(message)


def test_package_is_our_own() -> None:
    assert pb.GraphDef.DESCRIPTOR.full_name == "runstep.GraphDef"
    assert pb.serving.PredictRequest.DESCRIPTOR.full_name == "runstep.serving.PredictRequest"


def test_bytes_are_tensorflows() -> None:
    # name "x", op "Const", attr dtype DT_FLOAT: as TensorFlow serializes it.
    data = bytes.fromhex("0a0178120543 6f6e73742a0b0a05647479706512023001".replace(" ", ""))
    node = pb.NodeDef.FromString(data)
    assert (node.name, node.op, node.attr["dtype"].type) == ("x", "Const", pb.DT_FLOAT)
    assert node.SerializeToString(deterministic=True) == data


def test_unpack_any_goes_by_the_last_part_of_the_name() -> None:
    asset = pb.AssetFileDef(filename="vocabulary.txt")
    packed = any_pb2.Any(
        type_url="type.googleapis.com/tensorflow.AssetFileDef", value=asset.SerializeToString()
    )
    unpacked = pb.AssetFileDef()
    assert pb.unpack_any(packed, unpacked)
    assert unpacked == asset
    other = pb.SaverDef(save_tensor_name="kept")
    assert not pb.unpack_any(packed, other)
    assert other.save_tensor_name == "kept"


def test_vendor_fields_of_the_configuration_are_kept() -> None:
    config = pb.ConfigProto(session_handle="s", global_io_parallelism_threads=3)
    assert pb.ConfigProto.FromString(config.SerializeToString()) == config
