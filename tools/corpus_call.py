"""One call of a signature, as the corpus records it."""

import dataclasses
from collections.abc import Mapping

import numpy as np


@dataclasses.dataclass(frozen=True)
class Call:
    """A signature key and its inputs; strings are arrays of bytes (numpy kind `S`)."""

    signature: str
    inputs: Mapping[str, np.ndarray]
