"""Reads a SavedModel from its folder, and finds the meta graph that has a given set of tags.

TF: tensorflow/cc/saved_model/reader.cc, constants.h
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from google.protobuf import descriptor_pool, text_format
from google.protobuf.message import DecodeError

import protos as pb
from runtime.foundation.errors import (
    DataLossError,
    NotFoundError,
    OutOfRangeError,
    UnimplementedError,
)
from runtime.framework.io.file_errors import file_error

BINARY_FILE = "saved_model.pb"
TEXT_FILE = "saved_model.pbtxt"
CHUNKED_FILE = "saved_model.cpb"
ASSETS_FOLDER = "assets"
VARIABLES_PREFIX = os.path.join("variables", "variables")


def read_saved_model(export_dir: str) -> pb.SavedModel:
    """Return the SavedModel in the folder `export_dir`.

    The binary file is read if there is one, else the text file. Raises OutOfRangeError if the
    binary file is malformed, DataLossError if the text file is malformed, UnimplementedError if the
    folder has only a file in the chunked form, NotFoundError if it has none of the three.
    """
    for name, parse in ((BINARY_FILE, _parse_binary), (TEXT_FILE, _parse_text)):
        path = os.path.join(export_dir, name)
        if os.path.exists(path):
            return parse(_contents(path), path)
    if os.path.exists(os.path.join(export_dir, CHUNKED_FILE)):
        raise UnimplementedError(
            f"{export_dir} holds a SavedModel in the chunked form ({CHUNKED_FILE}); "
            f"{BINARY_FILE} and {TEXT_FILE} can be read"
        )
    raise NotFoundError(
        "Could not find SavedModel .pb or .pbtxt at supplied export directory path: "
        f"{export_dir}. Check that the directory exists and that you have the right permissions "
        "for accessing it."
    )


def find_meta_graph(saved_model: pb.SavedModel, tags: Iterable[str]) -> pb.MetaGraphDef:
    """Return the meta graph whose tags are exactly `tags`, in any order.

    Raises NotFoundError if there is none, with a message that lists the existing sets of tags.
    """
    wanted = set(tags)
    for meta_graph in saved_model.meta_graphs:
        if set(meta_graph.meta_info_def.tags) == wanted:
            return meta_graph
    available = ", ".join(_braced(tags) for tags in tag_sets(saved_model))
    raise NotFoundError(
        f"Could not find meta graph def matching supplied tags: {_braced(wanted)}. To inspect "
        "available tag-sets in the SavedModel, please use the SavedModel CLI: `saved_model_cli`. "
        f"Available tag-sets: {available or 'none'}"
    )


def tag_sets(saved_model: pb.SavedModel) -> list[list[str]]:
    """Return the sorted tags of every meta graph; the meta graphs are in the order of the file."""
    return [sorted(set(graph.meta_info_def.tags)) for graph in saved_model.meta_graphs]


def _braced(tags: Iterable[str]) -> str:
    return f"{{ {' '.join(sorted(tags))} }}"


def _contents(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise file_error(error, path) from None


def _parse_binary(data: bytes, path: str) -> pb.SavedModel:
    try:
        return pb.SavedModel.FromString(data)
    except DecodeError:
        raise OutOfRangeError(
            f"Read less bytes than requested: can't parse {path} as a binary SavedModel"
        ) from None


def _parse_text(data: bytes, path: str) -> pb.SavedModel:
    try:
        return text_format.Parse(
            data,
            pb.SavedModel(),
            allow_unknown_field=True,  # A newer TensorFlow may have written more fields.
            # text_format calls no other method of a pool than the one that this class has.
            descriptor_pool=_TensorFlowNames(),  # type: ignore[arg-type] # only this method is used
        )
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise DataLossError(f"Can't parse {path} as text proto: {error}") from None


class _TensorFlowNames:
    """Finds the type of a packed message by the name that TensorFlow gives the type.

    For example, `tensorflow.AssetFileDef` is `runstep.AssetFileDef` in this runtime.
    """

    def FindMessageTypeByName(self, full_name: str) -> Any:  # noqa: N802 - protobuf's name
        _, _, name = full_name.rpartition(".")
        return descriptor_pool.Default().FindMessageTypeByName(f"runstep.{name}")
