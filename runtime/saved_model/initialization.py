"""What initialises the state of a meta graph: the restore op, the init op, and their feeds.

TF: tensorflow/cc/saved_model/loader_util.cc (GetInitOp, GetAssetFileDefs), loader.cc
"""

from __future__ import annotations

import os

import numpy as np
from google.protobuf.any_pb2 import Any

import protos as pb
from protos.unpack import unpack_any
from runtime.foundation.errors import FailedPreconditionError
from runtime.framework.attr_value import raw_bytes
from runtime.framework.io.tensor_bundle import index_path
from runtime.saved_model.saved_model_files import ASSETS_FOLDER, VARIABLES_PREFIX

INIT_OP_SIGNATURE_KEY = "__saved_model_init_op"
TRAIN_OP_SIGNATURE_KEY = "__saved_model_train_op"
MAIN_OP_COLLECTION = "saved_model_main_op"
LEGACY_INIT_OP_COLLECTION = "legacy_init_op"
ASSETS_COLLECTION = "saved_model_assets"


def init_op_name(meta_graph_def: pb.MetaGraphDef, export_dir: str) -> str:
    """Return the name of the init op, which runs after the restore op; "" if there is none.

    The name is the output of the init signature; if there is no such signature, the only member of
    the collection `saved_model_main_op` or `legacy_init_op`. Raises FailedPreconditionError if the
    collection does not have exactly one member.
    """
    signature = meta_graph_def.signature_def.get(INIT_OP_SIGNATURE_KEY)
    if signature is not None and INIT_OP_SIGNATURE_KEY in signature.outputs:
        return signature.outputs[INIT_OP_SIGNATURE_KEY].name
    for key in (MAIN_OP_COLLECTION, LEGACY_INIT_OP_COLLECTION):
        if key in meta_graph_def.collection_def:
            names = meta_graph_def.collection_def[key].node_list.value
            if len(names) != 1:
                raise FailedPreconditionError(f"Expected exactly one main op in : {export_dir}")
            return names[0]
    return ""


def asset_file_defs(meta_graph_def: pb.MetaGraphDef) -> list[pb.AssetFileDef]:
    """Return the assets of a meta graph, each with the tensor that must be fed its path.

    Raises FailedPreconditionError if the collection of assets holds messages of another type.
    """
    if meta_graph_def.asset_file_def:
        return list(meta_graph_def.asset_file_def)
    if ASSETS_COLLECTION not in meta_graph_def.collection_def:
        return []
    packed = meta_graph_def.collection_def[ASSETS_COLLECTION].any_list.value
    return [_unpack_asset(each) for each in packed]


def _unpack_asset(packed: Any) -> pb.AssetFileDef:
    asset = pb.AssetFileDef()
    if not unpack_any(packed, asset):
        raise FailedPreconditionError(
            f"Expected Any type_url for: tensorflow.AssetFileDef. Got: {packed.type_url}."
        )
    return asset


def asset_feeds(meta_graph_def: pb.MetaGraphDef, export_dir: str) -> dict[str, np.ndarray]:
    """Return {name of a tensor: path of the asset that it takes, a string scalar}.

    These are feeds of both the restore op and the init op.
    """
    return {
        asset.tensor_info.name: _string(os.path.join(export_dir, ASSETS_FOLDER, asset.filename))
        for asset in asset_file_defs(meta_graph_def)
    }


def restore_feeds(meta_graph_def: pb.MetaGraphDef, export_dir: str) -> dict[str, np.ndarray] | None:
    """Return {name of a tensor: path prefix of the variables}, a feed of the restore op.

    Return None if there is nothing to restore.
    """
    prefix = os.path.join(export_dir, VARIABLES_PREFIX)
    saver = meta_graph_def.saver_def
    if not saver.restore_op_name or not os.path.exists(index_path(prefix)):
        return None
    return {saver.filename_tensor_name: _string(prefix)}


def _string(value: str) -> np.ndarray:
    return np.array(raw_bytes(value), object)
