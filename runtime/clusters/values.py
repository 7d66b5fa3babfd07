"""Values: the tensors of a model that is being written, with all that is known of them.

A Value has TensorFlow's shape, whatever the order of the axes in the model. Sizes may be symbolic
(`dimensions`). Four kinds of Value differ in what is known before a run:

- a *constant*: the graph itself gives the array (`constant`);
- a *weight*: the array follows from variables and constants (`weight`). It may change when a
  variable is assigned, so no decision may depend on its elements, only on its shape and type;
- *sizes*: a vector or scalar of integers, each a Dimension (`sizes`), as `Shape` gives;
- any other value is known at a run only.

A Value has a name in the model from when an operation first makes or reads it.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Sequence

import numpy as np

from runtime.clusters.dimensions import Dimension, Shape
from runtime.framework.dtypes import DataType


class Layout(enum.Enum):
    """The order of the axes in the model of a tensor whose TensorFlow order is batch, …, channels.

    Only values of rank 3 to 5 are ever channels-first: batch, channels, then the spatial axes.
    """

    AS_IS = "as in TensorFlow"
    CHANNELS_FIRST = "channels first"


class Weight:
    """An array that follows from variables and constants: a source, or a function of others.

    `position` is the index of a source among the arrays that the caller derives from variables; it
    is None if the weight is `function` of `operands`.
    """

    __slots__ = ("array", "function", "operands", "position")

    def __init__(
        self,
        array: np.ndarray,
        position: int | None = None,
        function: Callable[..., np.ndarray] | None = None,
        operands: Sequence[Weight | np.ndarray] = (),
    ) -> None:
        self.array = array  # for the variables' values at the time of emission
        self.position = position
        self.function = function
        self.operands = tuple(operands)

    def evaluate(self, sources: Sequence[np.ndarray], memo: dict[Weight, np.ndarray]) -> np.ndarray:
        """Return the array for other values of the sources; `memo` keeps what was computed."""
        if self.position is not None:
            return sources[self.position]
        found = memo.get(self)
        if found is None:
            assert self.function is not None
            arrays = [
                each.evaluate(sources, memo) if isinstance(each, Weight) else each
                for each in self.operands
            ]
            found = memo[self] = self.function(*arrays)
        return found


def release(weights: Sequence[Weight]) -> None:
    """Drop the present arrays of weights, and of those that they are functions of.

    Emission needs them, and `evaluate` doesn't.
    """
    pending = list(weights)
    while pending:
        weight = pending.pop()
        weight.array = _RELEASED
        pending += [each for each in weight.operands if isinstance(each, Weight)]


_RELEASED = np.empty(0)


@dataclasses.dataclass(slots=True, eq=False)
class Value:
    """A tensor of the model; `shape` and the meaning of axes are TensorFlow's."""

    dtype: DataType
    shape: Shape
    name: str = ""  # empty until the model has the tensor
    layout: Layout = Layout.AS_IS  # of the tensor called `name`
    constant: np.ndarray | None = None
    weight: Weight | None = None
    sizes: tuple[Dimension, ...] | None = None  # the elements; of a scalar, its single element

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def model_shape(self) -> Shape:
        """The sizes in the order that the axes have in the model."""
        if self.layout is Layout.CHANNELS_FIRST:
            return (self.shape[0], self.shape[-1], *self.shape[1:-1])
        return self.shape

    @property
    def array(self) -> np.ndarray | None:
        """The array of a constant or a weight, None of other values.

        The elements of a weight may change later; see the head of this module.
        """
        return self.weight.array if self.weight is not None else self.constant
