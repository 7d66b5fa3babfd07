"""One call of a signature, as the corpus records it."""

import dataclasses
from collections.abc import Mapping

import numpy as np


@dataclasses.dataclass(frozen=True)
class Call:
    """A signature key and its inputs; strings are arrays of bytes (numpy kind `S`).

    An input or output that is a SparseTensor has three keys: `key.indices`, `key.values` and
    `key.dense_shape`. A model that is a bare GraphDef has no signatures: its keys are tensor names,
    and `outputs` names the tensors to fetch.
    """

    signature: str
    inputs: Mapping[str, np.ndarray]
    outputs: tuple[str, ...] = ()
