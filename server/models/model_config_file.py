"""ModelConfigFile: TensorFlow Serving's model config file, and its text that is in force.

The file may be changed, or broken, while the server runs. A process that takes the place of another
one must serve what the others do, so it starts with the text that is in force, which all of them
keep; later it looks at the file when they do.
"""

from __future__ import annotations

from pathlib import Path

from server.host import KeptConfig
from server.models.model_config import ModelConfig, parse_model_config, read_model_config_text


class ModelConfigFile:
    """The file at `path`; `in_force` has the text for processes that start later.

    Used by one thread at a time.
    """

    def __init__(self, path: Path, in_force: KeptConfig) -> None:
        self._path = path
        self._in_force = in_force
        self._read: str | None = None
        self._kept: str | None = None

    def models_in_force(self) -> list[ModelConfig]:
        """Return the models to start with: those in force, or those of the file if none are yet.

        Raises what `read` raises.
        """
        self._kept = self._in_force.kept()
        if self._kept is not None:
            return parse_model_config(self._kept, self._path)
        models = self.read()
        self.keep()
        return models

    def read(self) -> list[ModelConfig]:
        """Read the models of the file; raise what `read_model_config_file` raises."""
        self._read = read_model_config_text(self._path)
        return parse_model_config(self._read, self._path)

    def keep(self) -> None:
        """Note that the models which were read last are in force now."""
        if self._read is not None and self._read != self._kept:
            self._in_force.keep(self._read)
            self._kept = self._read
