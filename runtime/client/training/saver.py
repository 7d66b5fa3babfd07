"""Saver: saves variables to checkpoint files and restores them, by operations of the graph.

The runtime reads and writes the checkpoint files where it runs; a server allows its configured
folders only. This process writes the list of checkpoints (the file `checkpoint`) and the meta
graphs.

TF: tensorflow/python/training/saver.py, checkpoint_management.py
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping, Sequence

import protos as pb
from runtime.client.framework.graph import get_default_graph
from runtime.client.framework.graph_elements import GraphKeys
from runtime.client.framework.graph_import import InputMap
from runtime.client.framework.operation import Tensor
from runtime.client.ops import op_function
from runtime.client.ops.construction import constant, group, identity, placeholder_with_default
from runtime.client.ops.variables import Variable
from runtime.client.session import BaseSession
from runtime.client.training.meta_graph import export_meta_graph, read_meta_graph
from runtime.client.training.meta_graph import import_meta_graph as import_message
from runtime.foundation.errors import NotFoundError
from runtime.framework.dtypes import DataType
from runtime.framework.io.new_files import write_file

_RESTORE_FAILED = (
    "Restoring from checkpoint failed. This is most likely due to a Variable name or other graph "
    "key that is missing from the checkpoint. Please ensure that you have not altered the graph "
    "expected based on the checkpoint. Original error:"
)
_CHECKPOINT_LINE = re.compile(r'^(model_checkpoint_path|all_model_checkpoint_paths): "(.*)"$')


class Saver:
    """Saves and restores variables.

    It adds operations to the graph, so it must be created before `Graph.finalize`.
    """

    def __init__(
        self,
        var_list: Mapping[str, Variable] | Sequence[Variable] | None = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        name: str = "save",
        saver_def: pb.SaverDef | None = None,
    ) -> None:
        """Add operations that save and restore `var_list` (None: all global variables).

        A mapping gives the variables' names in the checkpoint. The newest `max_to_keep` checkpoints
        are kept; if it is None or 0, all are. If `saver_def` is given, the operations that it names
        are used and none are added. Raises ValueError if there is no variable, if two variables
        have one name, or if `reshape` or `sharded` is set, which are not supported.
        """
        if reshape or sharded:
            raise ValueError("A Saver neither reshapes variables nor writes shards here")
        self.last_checkpoints: list[str] = []  # path prefixes of the checkpoints, newest last
        if saver_def is None:
            variables, graph = _by_key(var_list), get_default_graph()
            with graph.name_scope(name), graph.control_dependencies(None):
                saver_def = _saver_def(variables)
            saver_def.max_to_keep = max_to_keep or 0
        self._saver_def = saver_def

    def as_saver_def(self) -> pb.SaverDef:
        """Return the SaverDef, which names the saver's operations."""
        return self._saver_def

    def save(
        self,
        sess: BaseSession,
        save_path: str | os.PathLike[str],
        global_step: int | Tensor | Variable | None = None,
        latest_filename: str = "checkpoint",
        write_meta_graph: bool = True,
    ) -> str:
        """Write a checkpoint and return its path.

        If `global_step` is given, the path ends in `-<global_step>`. Raises FailedPreconditionError
        if a variable is uninitialised, and the OpError of a file operation that fails.
        """
        path = os.fspath(save_path)
        if global_step is not None:
            is_number = isinstance(global_step, int)
            path = f"{path}-{global_step if is_number else int(sess.run(global_step))}"
        names = self._saver_def
        sess.run(names.save_tensor_name, {names.filename_tensor_name: path})
        self._record(path)
        _write_state(path, self.last_checkpoints, latest_filename)
        if write_meta_graph:
            export_meta_graph(f"{path}.meta", sess.graph, names)
        return path

    def restore(self, sess: BaseSession, save_path: str | os.PathLike[str] | None) -> None:
        """Assign the values of a checkpoint to the variables.

        Raises ValueError if there is no checkpoint, NotFoundError if a variable is not in it.
        """
        if save_path is None:
            raise ValueError("Can't load save_path when it is None.")
        path = os.fspath(save_path)
        if not sess.sess_str and not checkpoint_exists(path):
            raise ValueError(f"The passed save_path is not a valid checkpoint: {path}")
        names = self._saver_def
        try:
            sess.run(names.restore_op_name, {names.filename_tensor_name: path})
        except NotFoundError as error:
            raise NotFoundError(f"{_RESTORE_FAILED}\n\n{error}") from None

    def _record(self, path: str) -> None:
        """Append a checkpoint to the list, and delete the oldest ones beyond `max_to_keep`."""
        if path in self.last_checkpoints:
            self.last_checkpoints.remove(path)
        self.last_checkpoints.append(path)
        limit = self._saver_def.max_to_keep
        while limit and len(self.last_checkpoints) > limit:
            oldest = self.last_checkpoints.pop(0)
            for file in [f"{oldest}.index", f"{oldest}.meta", *_shards(oldest)]:
                if os.path.exists(file):
                    os.remove(file)


def _saver_def(variables: Mapping[str, Variable]) -> pb.SaverDef:
    """Add operations that save and restore `variables`, and return the SaverDef that names them."""
    keys = list(variables)
    dtypes = [variable.dtype for variable in variables.values()]
    filename = placeholder_with_default("model", [], "Const")
    names, whole = constant(keys, DataType.STRING), constant([""] * len(keys), DataType.STRING)
    values = [variable.read_value() for variable in variables.values()]
    save = op_function("SaveV2")(filename, names, whole, values)
    with filename.graph.control_dependencies([save]):
        saved = identity(filename, name="control_dependency")
    restored = op_function("RestoreV2")(filename, names, whole, dtypes)
    restore = group(
        *(
            variable.assign(value, read_value=False)
            for variable, value in zip(variables.values(), restored, strict=True)
        ),
        name="restore_all",
    )
    return pb.SaverDef(
        filename_tensor_name=filename.name,
        save_tensor_name=saved.name,
        restore_op_name=restore.name,
        version=pb.SaverDef.V2,
    )


def _by_key(
    var_list: Mapping[str, Variable] | Sequence[Variable] | None,
) -> dict[str, Variable]:
    if isinstance(var_list, Mapping):
        found = dict(var_list)
    else:
        if var_list is None:
            var_list = get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES)
        found = {}
        for variable in var_list:
            if variable.op.name in found and found[variable.op.name] is not variable:
                raise ValueError(f"At least two variables have the same name: {variable.op.name}")
            found[variable.op.name] = variable
    if not found:
        raise ValueError("No variables to save")
    return found


def _shards(path: str) -> list[str]:
    return glob.glob(f"{glob.escape(path)}.data-?????-of-?????")


def checkpoint_exists(checkpoint_prefix: str) -> bool:
    """Return whether a checkpoint of format V1 or V2 exists at that path prefix."""
    return os.path.exists(f"{checkpoint_prefix}.index") or os.path.exists(checkpoint_prefix)


def latest_checkpoint(checkpoint_dir: str, latest_filename: str = "checkpoint") -> str | None:
    """Return the newest checkpoint that a Saver wrote to the folder, or None if there is none."""
    try:
        with open(os.path.join(checkpoint_dir, latest_filename), encoding="utf-8") as file:
            lines = file.read().splitlines()
    except OSError:
        return None
    for line in lines:
        match = _CHECKPOINT_LINE.match(line)
        if match is not None and match[1] == "model_checkpoint_path":
            path = os.path.join(checkpoint_dir, _unescaped(match[2]))
            return path if checkpoint_exists(path) else None
    return None


def _write_state(path: str, paths: Sequence[str], latest_filename: str) -> None:
    """Write the CheckpointState as text; paths in its own folder are written as file names."""
    folder = os.path.dirname(path)

    def shown(each: str) -> str:
        is_near = os.path.dirname(each) == folder
        name = os.path.basename(each) if is_near else os.path.abspath(each)
        return name.replace("\\", "\\\\").replace('"', '\\"')

    lines = [f'model_checkpoint_path: "{shown(path)}"']
    lines += [f'all_model_checkpoint_paths: "{shown(each)}"' for each in paths]
    write_file(os.path.join(folder, latest_filename), ("\n".join(lines) + "\n").encode())


def _unescaped(text: str) -> str:
    return text.replace('\\"', '"').replace("\\\\", "\\")


def import_meta_graph(
    meta_graph_or_file: str | pb.MetaGraphDef,
    clear_devices: bool = False,
    import_scope: str | None = None,
    input_map: InputMap | None = None,
) -> Saver | None:
    """Add a meta graph to the default graph, and return a Saver of its saver operations.

    If the meta graph has no saver operations, a new Saver of all variables is returned, or None if
    there are no variables. Raises what `meta_graph.import_meta_graph` raises.
    """
    scope = import_scope or ""
    message = read_meta_graph(meta_graph_or_file)
    if clear_devices:
        without = pb.MetaGraphDef()
        without.CopyFrom(message)
        for node in without.graph_def.node:
            node.device = ""
        message = without
    import_message(message, scope, input_map)
    if message.HasField("saver_def"):
        saver_def = pb.SaverDef()
        saver_def.CopyFrom(message.saver_def)
        prefix = f"{scope}/" if scope else ""
        for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
            setattr(saver_def, field, prefix + getattr(saver_def, field))
        return Saver(saver_def=saver_def)
    has_variables = bool(get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES))
    return Saver() if has_variables else None
