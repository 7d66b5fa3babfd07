"""Export of graphs as SavedModels: `Builder`, `simple_save`, and signatures.

TF: tensorflow/python/saved_model/builder_impl.py, simple_save.py, signature_def_utils_impl.py
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import protos as pb
from runtime.client.framework.graph import Graph
from runtime.client.framework.graph_elements import GraphKeys
from runtime.client.framework.graph_import import import_graph_def
from runtime.client.framework.operation import Operation, Tensor
from runtime.client.ops.sparse_values import SparseTensor
from runtime.client.ops.variables import Variable
from runtime.client.session import BaseSession
from runtime.client.training.meta_graph import export_meta_graph
from runtime.framework.tensor_codec import tensor_from_proto
from runtime.saved_model.exporter import (
    VariableValues,
    describe_export,
    prepare_folder,
    read_variables,
    write_saved_model,
)
from runtime.saved_model.initialization import INIT_OP_SIGNATURE_KEY, MAIN_OP_COLLECTION
from runtime.saved_model.saver_nodes import SaverNodes, free_prefix, saver_nodes

SERVING = "serve"  # tag of the meta graphs that servers load
DEFAULT_SERVING_SIGNATURE_DEF_KEY = "serving_default"
PREDICT_METHOD_NAME = "tensorflow/serving/predict"


def build_tensor_info(tensor: object) -> pb.TensorInfo:
    """Return the TensorInfo of a tensor or sparse tensor. Raises TypeError for other types."""
    if isinstance(tensor, SparseTensor):
        info = pb.TensorInfo(dtype=int(tensor.dtype))  # type: ignore[arg-type] # same numbers
        info.coo_sparse.values_tensor_name = tensor.values.name
        info.coo_sparse.indices_tensor_name = tensor.indices.name
        info.coo_sparse.dense_shape_tensor_name = tensor.dense_shape.name
        return info
    if not isinstance(tensor, Tensor):
        raise TypeError(f"A signature is made of tensors, got {tensor!r}")
    return pb.TensorInfo(
        name=tensor.name,
        dtype=int(tensor.dtype),  # type: ignore[arg-type] # same numbers
        tensor_shape=tensor.shape.as_proto(),
    )


def predict_signature_def(
    inputs: Mapping[str, Tensor | SparseTensor], outputs: Mapping[str, Tensor | SparseTensor]
) -> pb.SignatureDef:
    """Return the SignatureDef of a predict method whose inputs and outputs have these names."""
    return pb.SignatureDef(
        inputs={name: build_tensor_info(tensor) for name, tensor in inputs.items()},
        outputs={name: build_tensor_info(tensor) for name, tensor in outputs.items()},
        method_name=PREDICT_METHOD_NAME,
    )


def simple_save(
    session: BaseSession,
    export_dir: str | os.PathLike[str],
    inputs: Mapping[str, Tensor | SparseTensor],
    outputs: Mapping[str, Tensor | SparseTensor],
    main_op: Operation | None = None,
) -> None:
    """Write a SavedModel with one signature, `serving_default`, and the tag `serve`.

    Raises what `Builder` raises.
    """
    builder = Builder(export_dir)
    signatures = {DEFAULT_SERVING_SIGNATURE_DEF_KEY: predict_signature_def(inputs, outputs)}
    builder.add_meta_graph_and_variables(session, [SERVING], signatures, main_op=main_op)
    builder.save()


class Builder:
    """Collects the meta graphs, variables and assets of a SavedModel, then writes it."""

    def __init__(self, export_dir: str | os.PathLike[str]) -> None:
        """Create the folder. Raises AlreadyExistsError if it exists and is not empty."""
        self._export_dir = os.fspath(export_dir)
        self._meta_graphs: list[pb.MetaGraphDef] = []
        self._variables: VariableValues = {}
        self._assets: dict[str, str] = {}
        prepare_folder(self._export_dir)

    def add_meta_graph_and_variables(
        self,
        session: BaseSession,
        tags: Sequence[str],
        signature_def_map: Mapping[str, pb.SignatureDef],
        assets_list: Sequence[Tensor] | None = None,
        main_op: Operation | None = None,
    ) -> None:
        """Add the graph of `session` and the current values of its variables.

        Save and restore operations are added to the graph. `assets_list` has constants that hold
        the paths of files to copy (None: the collection `asset_filepaths`). `main_op` is run after
        each restore, for instance to initialise tables. Raises FailedPreconditionError if a
        variable is uninitialised, RuntimeError if the graph is finalized.
        """
        graph = session.graph
        nodes = _add_saver(graph)
        if nodes is not None:
            session.extend()
            self._variables = read_variables(session.runtime_session, nodes)
        saver_def = nodes.saver_def if nodes is not None else None
        meta_graph_def = export_meta_graph(graph=graph, saver_def=saver_def)
        for key, signature in signature_def_map.items():
            meta_graph_def.signature_def[key].CopyFrom(signature)
        assets = assets_list
        if assets is None:
            assets = graph.get_collection(GraphKeys.ASSET_FILEPATHS)
        self._add_assets(meta_graph_def, assets)
        if main_op is not None:
            _add_main_op(meta_graph_def, main_op)
        describe_export(meta_graph_def, tags)
        self._meta_graphs.append(meta_graph_def)

    def _add_assets(self, meta_graph_def: pb.MetaGraphDef, assets: Sequence[Tensor]) -> None:
        for tensor in assets:
            value = tensor_from_proto(tensor.op.node_def.attr["value"].tensor)
            source = value.item().decode()
            filename = os.path.basename(source)
            asset = meta_graph_def.asset_file_def.add(filename=filename)
            asset.tensor_info.name = tensor.name
            self._assets[filename] = source

    def save(self) -> str:
        """Write the SavedModel and return the path of `saved_model.pb`.

        Raises the OpError of a file operation that fails.
        """
        write_saved_model(self._export_dir, self._meta_graphs, self._variables, self._assets)
        return os.path.join(self._export_dir, "saved_model.pb")


def _add_saver(graph: Graph) -> SaverNodes | None:
    """Add operations that save and restore the variables; return None if there are none."""
    keys = (GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES)
    variables = dict.fromkeys(
        variable.op
        for key in keys
        for variable in graph.get_collection(key)
        if isinstance(variable, Variable)
    )
    if not variables:
        return None
    nodes = saver_nodes(
        [operation.node_def for operation in variables], free_prefix(graph.as_graph_def())
    )
    there = {operation.name: operation.outputs[0] for operation in variables}
    with graph.as_default(), graph.control_dependencies(None):
        import_graph_def(pb.GraphDef(node=nodes.nodes), input_map=there, name="")
    return nodes


def _add_main_op(meta_graph_def: pb.MetaGraphDef, main_op: Operation) -> None:
    """Record `main_op` as a signature, and also as a collection, which older loaders read."""
    signature = meta_graph_def.signature_def[INIT_OP_SIGNATURE_KEY]
    signature.outputs[INIT_OP_SIGNATURE_KEY].name = main_op.name
    meta_graph_def.collection_def[MAIN_OP_COLLECTION].node_list.value.append(main_op.name)
