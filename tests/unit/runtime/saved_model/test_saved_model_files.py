"""Reading a SavedModel's folder and selecting a meta graph by tags."""

from __future__ import annotations

import pathlib

import pytest
from google.protobuf import text_format
from google.protobuf.any_pb2 import Any

import protos as pb
from runtime.foundation.errors import (
    DataLossError,
    NotFoundError,
    OutOfRangeError,
    UnimplementedError,
)
from runtime.saved_model.initialization import ASSETS_COLLECTION, asset_feeds
from runtime.saved_model.saved_model_files import find_meta_graph, read_saved_model, tag_sets


def saved_model(*tag_lists: list[str]) -> pb.SavedModel:
    return pb.SavedModel(
        meta_graphs=[
            pb.MetaGraphDef(meta_info_def=pb.MetaGraphDef.MetaInfoDef(tags=tags))
            for tags in tag_lists
        ]
    )


def test_a_folder_without_a_model() -> None:
    with pytest.raises(NotFoundError) as caught:
        read_saved_model("/nope")
    assert caught.value.message == (
        "Could not find SavedModel .pb or .pbtxt at supplied export directory path: /nope. Check "
        "that the directory exists and that you have the right permissions for accessing it."
    )


def test_the_binary_form_is_preferred(tmp_path: pathlib.Path) -> None:
    (tmp_path / "saved_model.pbtxt").write_text(text_format.MessageToString(saved_model(["text"])))
    assert tag_sets(read_saved_model(str(tmp_path))) == [["text"]]
    (tmp_path / "saved_model.pb").write_bytes(saved_model(["binary"]).SerializeToString())
    assert tag_sets(read_saved_model(str(tmp_path))) == [["binary"]]


def test_files_that_do_not_parse(tmp_path: pathlib.Path) -> None:
    (tmp_path / "saved_model.pbtxt").write_text("meta_graphs { nonsense")
    with pytest.raises(DataLossError, match="as text proto"):
        read_saved_model(str(tmp_path))
    (tmp_path / "saved_model.pbtxt").write_bytes(b"\xff\xfe")
    with pytest.raises(DataLossError, match="as text proto"):
        read_saved_model(str(tmp_path))
    (tmp_path / "saved_model.pb").write_bytes(b"junk junk")
    with pytest.raises(OutOfRangeError, match="Read less bytes than requested"):
        read_saved_model(str(tmp_path))


def test_the_chunked_form_is_named(tmp_path: pathlib.Path) -> None:
    (tmp_path / "saved_model.cpb").write_bytes(b"")
    with pytest.raises(UnimplementedError, match="chunked form"):
        read_saved_model(str(tmp_path))


def test_the_text_form_may_hold_packed_messages_and_unknown_fields(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "saved_model.pbtxt").write_text(
        """
        a_field_of_the_future: 3
        meta_graphs {
          meta_info_def { tags: "serve" }
          collection_def { key: "saved_model_assets" value { any_list { value {
            [type.googleapis.com/tensorflow.AssetFileDef] {
              tensor_info { name: "Const:0" } filename: "foo.txt"
            } } } } }
        }
        """
    )
    (meta_graph,) = read_saved_model(str(tmp_path)).meta_graphs
    assert {k: v.item() for k, v in asset_feeds(meta_graph, "/m").items()} == {
        "Const:0": b"/m/assets/foo.txt"
    }


def test_assets_of_the_collection_and_of_the_field() -> None:
    asset = pb.AssetFileDef(tensor_info=pb.TensorInfo(name="a:0"), filename="old.txt")
    packed = Any(
        type_url="type.googleapis.com/tensorflow.AssetFileDef", value=asset.SerializeToString()
    )
    meta_graph = pb.MetaGraphDef()
    meta_graph.collection_def[ASSETS_COLLECTION].any_list.value.append(packed)
    assert list(asset_feeds(meta_graph, "/m")) == ["a:0"]
    meta_graph.asset_file_def.add(tensor_info=pb.TensorInfo(name="b:0"), filename="new.txt")
    assert list(asset_feeds(meta_graph, "/m")) == ["b:0"]


@pytest.mark.parametrize("tags", [["serve"], ["gpu", "serve"], ["serve", "serve"]])
def test_tags_are_matched_as_sets(tags: list[str]) -> None:
    saved = saved_model(["serve", "gpu"], ["serve"])
    assert set(find_meta_graph(saved, tags).meta_info_def.tags) == set(tags)


@pytest.mark.parametrize(
    ("tags", "shown"),
    [([], "{  }"), (["train"], "{ train }"), (["serve", "gpu", "tpu"], "{ gpu serve tpu }")],
)
def test_tags_that_no_meta_graph_has(tags: list[str], shown: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        find_meta_graph(saved_model(["serve", "gpu"], ["serve"]), tags)
    assert caught.value.message == (
        f"Could not find meta graph def matching supplied tags: {shown}. To inspect available "
        "tag-sets in the SavedModel, please use the SavedModel CLI: `saved_model_cli`. "
        "Available tag-sets: { gpu serve }, { serve }"
    )
    with pytest.raises(NotFoundError, match="Available tag-sets: none"):
        find_meta_graph(pb.SavedModel(), tags)
