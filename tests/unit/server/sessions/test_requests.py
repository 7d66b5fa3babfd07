import pytest

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from server.sessions.requests import CreateRequest, ModelSource


def test_at_most_one_source():
    with pytest.raises(InvalidArgumentError, match=r"at most one of .*; got model, graph_def"):
        CreateRequest(model=ModelSource("m"), graph_def=pb.GraphDef())
