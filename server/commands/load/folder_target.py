"""A SavedModel that is loaded in this process: each call is a step in its caller's thread."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import protos as pb
from runtime.api import SavedModelBundle, SessionOptions, load_saved_model
from runtime.errors import OpError
from server.commands.load.example_inputs import make_inputs, signature_named, specs_of
from server.commands.load.target import CallFailed

_CALLER_THREAD = pb.RunOptions(inter_op_thread_pool=-1)


class FolderTarget:
    """The steps of one signature of a loaded model; they share its session."""

    in_process = True

    def __init__(
        self, bundle: SavedModelBundle, folder: str, signature: str, batch: int, file: str | None
    ) -> None:
        found = signature_named(bundle.signatures, signature, folder)
        inputs = make_inputs(specs_of(found), batch, file)
        self._session = bundle.session
        self._feeds: Mapping[str, np.ndarray] = {
            found.inputs[alias].name: array for alias, array in inputs.items()
        }
        self._fetches = [info.name for info in found.outputs.values()]
        self.description = f"steps of {folder} in this process"

    def open(self) -> FolderTarget:
        """Return this target: its calls share nothing that changes."""
        return self

    def __call__(self) -> None:
        """Run a step."""
        try:
            self._session.run(self._feeds, self._fetches, [], _CALLER_THREAD)
        except OpError as error:
            raise CallFailed(error.code.name, error.message) from None

    def close(self) -> None:
        """Do nothing: the session ends with the process."""


def load_folder(folder: str, tags: list[str]) -> SavedModelBundle:
    """Load a SavedModel; raise OpError if that fails."""
    return load_saved_model(SessionOptions(), _CALLER_THREAD, folder, tags)
