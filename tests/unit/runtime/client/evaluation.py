"""Values of tensors, computed in a session of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from runtime.client import Session, Tensor, global_variables_initializer


def value_of(tensor: Tensor) -> Any:
    """The value of a tensor whose graph needs no feeds and no initialised variables."""
    return Session(graph=tensor.graph).run(tensor)


def values(*tensors: Any, feeds: Mapping[Any, Any] | None = None) -> list[Any]:
    """The values of tensors of the default graph as lists, after its variables are initialised."""
    with Session() as session:
        session.run(global_variables_initializer())
        return [np.asarray(each).tolist() for each in session.run(list(tensors), feeds)]
