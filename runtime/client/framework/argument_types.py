"""Names for the types of arguments and results that have many forms.

The front end accepts what TensorFlow accepts. A value of another type raises in the conversion
function that the comment of each name refers to. Element types are `element_types.DTypeLike`,
static shapes `tensor_shape.ShapeLike`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

# What converts to a tensor: a Tensor, a TensorConvertible (a variable), a numpy array or scalar, a
# Python number or string, or nested lists of these. See `conversion.convert_to_tensor`.
TensorLike: TypeAlias = object

# A ShapeLike, or a TensorLike that holds the sizes. See `array_ops.as_sizes`.
SizesLike: TypeAlias = Any

# The key of `tensor[key]`: an index (an int or a scalar tensor), a slice, `...`, None, or a tuple
# of these. See `operators.slice_tensor`.
SliceKey: TypeAlias = Any

# An operation, a tensor, the name of either, or a variable. See `Graph.as_graph_element`.
ElementLike: TypeAlias = object

# A value, or nested lists, tuples, namedtuples and dicts of values. The form is the program's
# choice, and its functions take and return values of that form. See `structures.flatten`.
Structure: TypeAlias = Any

# A Structure of ElementLikes, sparse tensors and IndexedSlices. See `fetches.FetchHandler`.
Fetches: TypeAlias = object

# tensor, name of a tensor, or nested tuple of these → value to feed. See `feeds.read_feeds`.
FeedDict: TypeAlias = Mapping[Any, Any]

# A member of a collection: whatever the program adds to it.
CollectionMember: TypeAlias = Any
