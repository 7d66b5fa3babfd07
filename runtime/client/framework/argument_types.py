"""Names for the types of arguments and results that have many forms.

The front end accepts what TensorFlow accepts; a value of another type raises at the conversion that
each name refers to. Element types are `element_types.DTypeLike`, static shapes
`tensor_shape.ShapeLike`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

# Converts to a tensor: a Tensor, a TensorConvertible (a variable), a numpy array or scalar, a
# Python number or string, or nested lists of these. See `conversion.convert_to_tensor`.
TensorLike: TypeAlias = object

# A ShapeLike, or a TensorLike of the sizes. See `array_ops.as_sizes`.
SizesLike: TypeAlias = Any

# The key of `tensor[key]`: an index (an int or a scalar tensor), a slice, `...`, None, or a tuple
# of these. See `operators.slice_tensor`.
SliceKey: TypeAlias = Any

# An operation or a tensor, its name, or a variable. See `Graph.as_graph_element`.
ElementLike: TypeAlias = object

# A value, or nested lists, tuples, namedtuples and dicts of values. The program determines the
# form, and with it that of what its functions take and return. See `structures.flatten`.
Structure: TypeAlias = Any

# A structure of ElementLikes, sparse tensors and IndexedSlices. See `fetches.FetchHandler`.
Fetches: TypeAlias = object

# Tensors, their names, or nested tuples of these → their values. See `feeds.read_feeds`.
FeedDict: TypeAlias = Mapping[Any, Any]

# A member of a collection: whatever the program adds to it.
CollectionMember: TypeAlias = Any
