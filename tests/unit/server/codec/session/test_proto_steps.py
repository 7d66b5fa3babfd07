import numpy as np
import pytest

import protos as pb
from runtime.foundation.errors import InvalidArgumentError, ResourceExhaustedError
from runtime.framework.dtypes import DataType
from runtime.framework.tensor_codec import tensor_to_proto
from server.codec.session.proto_steps import decoded_feeds

TENSORS = {
    "x": (DataType.FLOAT, (-1, 2)),
    "any": (DataType.INT32, None),
    "text": (DataType.STRING, ()),
    "handle": (DataType.RESOURCE, None),
    "list": (DataType.VARIANT, None),
}


info = TENSORS.__getitem__


X = np.array([[1, 2]], np.float32)


def named(name, array):
    return pb.NamedTensorProto(name=name, tensor=tensor_to_proto(array))


def test_proto_feeds():
    (array,) = decoded_feeds([named("x", X)], 1000, info).values()
    np.testing.assert_array_equal(array, X)
    with pytest.raises(InvalidArgumentError, match='Endpoint "x" fed more than once'):
        decoded_feeds([named("x", X), named("x", X)], 1000, info)
    with pytest.raises(ResourceExhaustedError, match="the limit is 7"):
        decoded_feeds([named("x", X)], 7, info)
