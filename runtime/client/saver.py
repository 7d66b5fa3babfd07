"""Saver: variables to checkpoint files and back, by the operations that it adds to the graph.

The files are read and written where the session runs: on a server in the folders that it allows.
The list of checkpoints (the file `checkpoint`) and meta graphs are written here.

TF: tensorflow/python/training/saver.py, checkpoint_management.py
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from runtime.client.construction import constant, group, placeholder_with_default
from runtime.client.graph import Graph, get_default_graph
from runtime.client.graph_elements import GraphKeys
from runtime.client.meta_graph import export_meta_graph
from runtime.client.ops import op_function
from runtime.client.session import BaseSession
from runtime.client.variables import Variable
from runtime.framework.dtypes import DataType

_CHECKPOINT_LINE = re.compile(r'^(model_checkpoint_path|all_model_checkpoint_paths): "(.*)"$')


class Saver:
    """Saves and restores variables. Made before the graph is finalized."""

    def __init__(
        self,
        var_list: Mapping[str, Variable] | Sequence[Variable] | None = None,
        max_to_keep: int | None = 5,
        name: str = "save",
    ) -> None:
        """Of the given variables, or of all global ones; a mapping gives the checkpoint's keys.

        `max_to_keep` checkpoints stay, the newest; None or 0 keeps all. ValueError without any
        variable, and for two of one name.
        """
        self._variables = _by_key(var_list)
        self._max_to_keep = max_to_keep or 0
        self.last_checkpoints: list[str] = []  # paths without suffixes, the newest last
        graph = get_default_graph()
        with graph.name_scope(name), graph.control_dependencies(None):
            self._add_operations(graph)

    def _add_operations(self, graph: Graph) -> None:
        keys = list(self._variables)
        variables = list(self._variables.values())
        dtypes = [variable.dtype for variable in variables]
        names, whole = constant(keys, DataType.STRING), constant([""] * len(keys), DataType.STRING)
        self._filename = placeholder_with_default("model", [], "Const")
        values = [variable.read_value() for variable in variables]
        self._save = op_function("SaveV2")(self._filename, names, whole, values)
        restored = op_function("RestoreV2")(self._filename, names, whole, dtypes)
        self._restore = group(
            *(
                variable.assign(value, read_value=False)
                for variable, value in zip(variables, restored, strict=True)
            ),
            name="restore_all",
        )

    def save(
        self,
        sess: BaseSession,
        save_path: str | os.PathLike[str],
        global_step: Any = None,
        latest_filename: str = "checkpoint",
        write_meta_graph: bool = True,
    ) -> str:
        """Write a checkpoint; its path, with `-<global_step>` when one is given.

        Raises FailedPreconditionError for a variable without a value, and the OpError of a file.
        """
        path = os.fspath(save_path)
        if global_step is not None:
            is_number = isinstance(global_step, int)
            path = f"{path}-{global_step if is_number else int(sess.run(global_step))}"
        sess.run(self._save, {self._filename: path})
        self._note(path)
        _write_state(path, self.last_checkpoints, latest_filename)
        if write_meta_graph:
            export_meta_graph(f"{path}.meta", graph=sess.graph)
        return path

    def restore(self, sess: BaseSession, save_path: str | os.PathLike[str]) -> None:
        """Assign what a checkpoint holds.

        Raises ValueError where there is none, NotFoundError for a variable that it lacks.
        """
        path = os.fspath(save_path)
        if not sess.sess_str and not checkpoint_exists(path):
            raise ValueError(f"The passed save_path is not a valid checkpoint: {path}")
        sess.run(self._restore, {self._filename: path})

    def _note(self, path: str) -> None:
        """Remember the newest; the oldest beyond the limit go."""
        if path in self.last_checkpoints:
            self.last_checkpoints.remove(path)
        self.last_checkpoints.append(path)
        while self._max_to_keep and len(self.last_checkpoints) > self._max_to_keep:
            oldest = self.last_checkpoints.pop(0)
            for file in [f"{oldest}.index", f"{oldest}.meta", *_shards(oldest)]:
                if os.path.exists(file):
                    os.remove(file)


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
    """Whether there are files of a checkpoint of that path, of either version."""
    return os.path.exists(f"{checkpoint_prefix}.index") or os.path.exists(checkpoint_prefix)


def latest_checkpoint(checkpoint_dir: str, latest_filename: str = "checkpoint") -> str | None:
    """The newest checkpoint that a Saver wrote into the folder, None when there is none."""
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
    """The CheckpointState, as text; paths in the folder are written relative to it."""
    folder = os.path.dirname(path)

    def shown(each: str) -> str:
        is_near = os.path.dirname(each) == folder
        name = os.path.basename(each) if is_near else os.path.abspath(each)
        return name.replace("\\", "\\\\").replace('"', '\\"')

    lines = [f'model_checkpoint_path: "{shown(path)}"']
    lines += [f'all_model_checkpoint_paths: "{shown(each)}"' for each in paths]
    with open(os.path.join(folder, latest_filename), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def _unescaped(text: str) -> str:
    return text.replace('\\"', '"').replace("\\\\", "\\")
