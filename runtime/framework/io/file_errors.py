"""Convert OSErrors to OpErrors with TensorFlow's text: `<path>; No such file or directory`."""

from __future__ import annotations

from runtime.foundation.errors import OpError, system_error


def file_error(error: OSError, path: str) -> OpError:
    """Return the OpError for `error`, an OSError of a failed access to `path`."""
    return system_error(error, path)
