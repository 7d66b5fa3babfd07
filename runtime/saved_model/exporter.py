"""Writes SavedModels: from meta graphs and values of variables, or from a loaded SavedModel.

Guarantees: `saved_model.pb` is the last file: it is written under a temporary name and then
renamed, so a server that watches the folder sees the whole model or none. If the export fails, the
folder is empty again, or gone if it is new.

TF: tensorflow/python/saved_model/builder_impl.py (SavedModelBuilder)
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

import protos as pb
from runtime.foundation.errors import AlreadyExistsError
from runtime.framework import op_def_registry
from runtime.framework.attr_value import raw_bytes
from runtime.framework.dtypes import DataType
from runtime.framework.io.file_errors import file_error
from runtime.framework.io.file_gate import AllowAll, FolderGate
from runtime.framework.io.new_files import write_file
from runtime.framework.io.tensor_bundle_writer import TensorBundleWriter
from runtime.graph.graph import RELEASE
from runtime.saved_model.freezing import freeze_meta_graph
from runtime.saved_model.initialization import asset_file_defs
from runtime.saved_model.loader import SavedModelBundle
from runtime.saved_model.saved_model_files import ASSETS_FOLDER, BINARY_FILE, VARIABLES_PREFIX
from runtime.saved_model.saver_nodes import SaverNodes, find_variables, free_prefix, saver_nodes
from runtime.sessions.runtime_session import RunRequest, RuntimeSession
from runtime.sessions.session_options import SessionOptions

_SCHEMA_VERSION = 1
VariableValues = Mapping[str, tuple[np.ndarray, DataType]]  # by the variable's checkpoint name


def write_saved_model(
    export_dir: str,
    meta_graphs: Sequence[pb.MetaGraphDef],
    variables: VariableValues,
    assets: Mapping[str, str],
) -> None:
    """Write a SavedModel into a folder that is new or empty.

    `assets` maps names of asset files to the paths of the files to copy. Raises AlreadyExistsError
    if the folder is not empty; if a file can't be read or written, raises the OpError of the
    failure.
    """
    with _prepared_folder(export_dir):
        if variables:
            prefix = os.path.join(export_dir, VARIABLES_PREFIX)
            with TensorBundleWriter(prefix, AllowAll()) as writer:
                for name in sorted(variables):
                    writer.add(name, *variables[name])
                writer.finish()
        _finish(export_dir, meta_graphs, assets)


@contextlib.contextmanager
def _prepared_folder(export_dir: str) -> Iterator[None]:
    """Prepare the folder `export_dir`; if the context fails, remove what is in it."""
    is_new = not os.path.isdir(export_dir)
    prepare_folder(export_dir)
    try:
        yield
    except BaseException:
        for entry in os.listdir(export_dir):
            shutil.rmtree(os.path.join(export_dir, entry), ignore_errors=True)
            with contextlib.suppress(OSError):  # no file, but a folder that is gone
                os.unlink(os.path.join(export_dir, entry))
        if is_new:
            with contextlib.suppress(OSError):
                os.rmdir(export_dir)
        raise


def prepare_folder(export_dir: str) -> None:
    """Create the folder `export_dir`.

    Raises AlreadyExistsError if it exists and is not empty.
    """
    try:
        os.makedirs(export_dir, exist_ok=True)
        if os.listdir(export_dir):
            raise AlreadyExistsError(
                "Export directory already exists, and isn't empty. Please choose a different "
                "export directory, or delete all the contents of the specified directory: "
                f"{export_dir}"
            )
    except OSError as error:
        raise file_error(error, export_dir) from None


def read_variables(session: RuntimeSession, nodes: SaverNodes) -> VariableValues:
    """Read the values of the variables in `session`, whose graph must contain `nodes`."""
    values = session.run({}, list(nodes.reads.values()))
    return {
        name: (np.asarray(value), nodes.dtypes[name])
        for name, value in zip(nodes.reads, values, strict=True)
    }


def describe_export(meta_graph_def: pb.MetaGraphDef, tags: Sequence[str]) -> None:
    """Set the tags, the TensorFlow version and the OpDefs of all used ops in a meta graph."""
    info = meta_graph_def.meta_info_def
    info.tags[:] = tags
    info.tensorflow_version = RELEASE
    graph_def = meta_graph_def.graph_def
    functions = graph_def.library.function
    used = {node.op for node in graph_def.node}
    used |= {node.op for function in functions for node in function.node_def}
    info.stripped_op_list.Clear()
    info.stripped_op_list.op.extend(
        op_def
        for op in sorted(used)
        if (op_def := op_def_registry.find(op)) is not None  # None if `op` is a function
    )


def export_bundle(bundle: SavedModelBundle, export_dir: str, freeze: bool = False) -> None:
    """Write a loaded SavedModel to the folder `export_dir`.

    Variables are written with their current values in `bundle.session`; if the graph has no saver,
    with their values right after loading. If `freeze` is true, the written graph has constants in
    place of variables, with the values right after loading. Raises what `write_saved_model` raises;
    if `freeze` is true, also UnimplementedError if a signature does not only read a variable.
    """
    meta_graph_def = pb.MetaGraphDef()
    meta_graph_def.CopyFrom(bundle.meta_graph_def)
    assets = {
        asset.filename: os.path.join(bundle.export_dir, ASSETS_FOLDER, asset.filename)
        for asset in asset_file_defs(meta_graph_def)
    }
    variables = find_variables(meta_graph_def.graph_def)
    if freeze:
        prefix = free_prefix(meta_graph_def.graph_def)
        frozen = freeze_meta_graph(
            meta_graph_def, lambda kept: _loaded_values(bundle, saver_nodes(kept, prefix))
        )
        describe_export(frozen, meta_graph_def.meta_info_def.tags)
        write_saved_model(export_dir, [frozen], {}, assets)
    elif meta_graph_def.saver_def.save_tensor_name or not variables:
        with _prepared_folder(export_dir):
            _run_saver(bundle, export_dir)
            _finish(export_dir, [meta_graph_def], assets)
    else:
        nodes = saver_nodes(variables, free_prefix(meta_graph_def.graph_def))
        values = _loaded_values(bundle, nodes)
        meta_graph_def.graph_def.node.extend(nodes.nodes)
        meta_graph_def.saver_def.CopyFrom(nodes.saver_def)
        write_saved_model(export_dir, [meta_graph_def], values, assets)


def _run_saver(bundle: SavedModelBundle, export_dir: str) -> None:
    """Save the variables with the saver in the graph, if the graph has one.

    It keeps the checkpoint names of the variables, and the object graph of a checkpoint.
    """
    saver = bundle.meta_graph_def.saver_def
    if not saver.save_tensor_name:
        return
    prefix = np.array(raw_bytes(os.path.join(export_dir, VARIABLES_PREFIX)), object)
    request = RunRequest(
        {saver.filename_tensor_name: prefix},
        [saver.save_tensor_name],
        files=FolderGate([export_dir], write=True),
    )
    try:
        os.mkdir(os.path.join(export_dir, os.path.dirname(VARIABLES_PREFIX)))
        bundle.session.run_async(request).result()
    except OSError as error:
        raise file_error(error, export_dir) from None


def _loaded_values(bundle: SavedModelBundle, nodes: SaverNodes) -> VariableValues:
    """Return the values that the variables have right after loading.

    They are read in a temporary session.
    """
    if not nodes.reads:
        return {}
    session, _ = bundle.open_session(SessionOptions())
    try:
        session.extend(pb.GraphDef(node=nodes.nodes))
        return read_variables(session, nodes)
    finally:
        session.close()


def _finish(
    export_dir: str, meta_graphs: Sequence[pb.MetaGraphDef], assets: Mapping[str, str]
) -> None:
    """Copy the assets, then write a temporary file and rename it to `saved_model.pb`."""
    saved_model = pb.SavedModel(saved_model_schema_version=_SCHEMA_VERSION, meta_graphs=meta_graphs)
    for filename, source in assets.items():
        _copy(source, os.path.join(export_dir, ASSETS_FOLDER, filename))
    write_file(
        os.path.join(export_dir, BINARY_FILE), saved_model.SerializeToString(deterministic=True)
    )


def _copy(source: str, destination: str) -> None:
    try:
        os.makedirs(os.path.dirname(destination), exist_ok=True)
        shutil.copyfile(source, destination)
    except OSError as error:
        is_source = error.filename == source and error.filename2 is None
        raise file_error(error, source if is_source else destination) from None
