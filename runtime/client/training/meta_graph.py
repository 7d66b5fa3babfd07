"""Export of a graph and its collections to a MetaGraphDef, and import of a MetaGraphDef.

TF: tensorflow/python/framework/meta_graph.py, training/saver.py (export_meta_graph)
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from google.protobuf.message import DecodeError

import protos as pb
from runtime.client.framework.argument_types import CollectionMember
from runtime.client.framework.graph import Graph, get_default_graph
from runtime.client.framework.graph_import import InputMap, import_graph_def
from runtime.client.framework.operation import Operation, Tensor
from runtime.client.ops.variables import Variable
from runtime.foundation.errors import DataLossError
from runtime.framework.io.file_errors import file_error
from runtime.framework.io.new_files import write_file
from runtime.graph.graph import RELEASE

# collections whose members TensorFlow stores as VariableDefs
_VARIABLE_COLLECTIONS = frozenset(
    ("variables", "trainable_variables", "local_variables", "model_variables")
)


def export_meta_graph(
    filename: str | None = None,
    graph: Graph | None = None,
    saver_def: pb.SaverDef | None = None,
    tags: str | Iterable[str] = (),
) -> pb.MetaGraphDef:
    """Return the MetaGraphDef of `graph` (None: the default graph).

    If `filename` is given, it is also written there. It contains the collections of variables,
    tensors, operations, strings and numbers; other collections are left out.
    """
    graph = graph or get_default_graph()
    meta_graph_def = pb.MetaGraphDef(graph_def=graph.as_graph_def())
    info = meta_graph_def.meta_info_def
    info.tensorflow_version = RELEASE
    info.tags.extend(tags)
    for key in graph.get_all_collection_keys():
        written = _collection_def(key, graph.get_collection(key))
        if written is not None:
            meta_graph_def.collection_def[key].CopyFrom(written)
    if saver_def is not None:
        meta_graph_def.saver_def.CopyFrom(saver_def)
    if filename is not None:
        write_file(filename, meta_graph_def.SerializeToString())
    return meta_graph_def


def import_meta_graph(
    meta_graph_or_file: pb.MetaGraphDef | str,
    import_scope: str = "",
    input_map: InputMap | None = None,
) -> pb.MetaGraphDef:
    """Add a meta graph and its collections to the default graph, and return the MetaGraphDef.

    Raises what `import_graph_def` raises, NotFoundError if the file is missing, DataLossError if
    the file is no MetaGraphDef.
    """
    meta_graph_def = read_meta_graph(meta_graph_or_file)
    graph = get_default_graph()
    import_graph_def(meta_graph_def.graph_def, input_map, name=import_scope)
    variables: dict[str, Variable] = {}  # variable name → one object for all collections
    for key, collection in meta_graph_def.collection_def.items():
        for value in _members(graph, key, collection, import_scope, variables):
            graph.add_to_collection(key, value)
    return meta_graph_def


def _collection_def(key: str, members: list[CollectionMember]) -> pb.CollectionDef | None:
    """Return the CollectionDef of a collection, or None if it can't represent the members."""
    written = pb.CollectionDef()
    if key in _VARIABLE_COLLECTIONS and all(isinstance(each, Variable) for each in members):
        written.bytes_list.value.extend(each.to_proto().SerializeToString() for each in members)
    elif all(isinstance(each, Tensor | Operation | Variable) for each in members):
        written.node_list.value.extend(each.name for each in members)
    elif all(isinstance(each, str | bytes) for each in members):
        written.bytes_list.value.extend(
            each.encode() if isinstance(each, str) else each for each in members
        )
    elif all(isinstance(each, int) for each in members):
        written.int64_list.value.extend(members)
    elif all(isinstance(each, int | float) for each in members):
        written.float_list.value.extend(members)
    else:
        return None
    return written


def _members(
    graph: Graph,
    key: str,
    collection: pb.CollectionDef,
    scope: str,
    variables: dict[str, Variable],
) -> list[CollectionMember]:
    kind = collection.WhichOneof("kind")
    if kind == "node_list":
        prefix = f"{scope}/" if scope else ""
        return [graph.as_graph_element(prefix + name) for name in collection.node_list.value]
    if kind == "bytes_list" and key in _VARIABLE_COLLECTIONS:
        return [
            _variable(graph, pb.VariableDef.FromString(packed), scope, variables)
            for packed in collection.bytes_list.value
        ]
    return [] if kind is None else list(getattr(collection, kind).value)


def _variable(
    graph: Graph, proto: pb.VariableDef, scope: str, variables: dict[str, Variable]
) -> Variable:
    if proto.variable_name not in variables:
        variables[proto.variable_name] = Variable.from_proto(proto, graph, scope)
    return variables[proto.variable_name]


def read_meta_graph(meta_graph_or_file: pb.MetaGraphDef | str) -> pb.MetaGraphDef:
    """Return the MetaGraphDef, read from a file if a path is given.

    Raises NotFoundError if the file is missing, DataLossError if the file is no MetaGraphDef.
    """
    if isinstance(meta_graph_or_file, pb.MetaGraphDef):
        return meta_graph_or_file
    path = os.fspath(meta_graph_or_file)
    try:
        with open(path, "rb") as file:
            return pb.MetaGraphDef.FromString(file.read())
    except OSError as error:
        raise file_error(error, path) from None
    except DecodeError:
        raise DataLossError(f"Can't parse {path} as a MetaGraphDef") from None
