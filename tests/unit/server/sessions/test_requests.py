import pytest

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from server.sessions.requests import CreateRequest, ModelSource, check_names


def test_at_most_one_source():
    with pytest.raises(InvalidArgumentError, match=r"at most one of .*; got model, graph_def"):
        CreateRequest(model=ModelSource("m"), graph_def=pb.GraphDef())


@pytest.mark.parametrize(
    ("feeds", "fetches"), [([], []), (["x"], ["y", "y:0"]), (["x:0", "x:1"], ["x:2"])]
)
def test_names_that_go_together(feeds, fetches):
    check_names(feeds, fetches)


@pytest.mark.parametrize(
    ("feeds", "fetches", "message"),
    [
        (["x", "x:0"], [], 'Endpoint "x:0" fed more than once.'),
        (["x:0"], ["x:0"], "x:0 is both fed and fetched."),
        (["x:0"], ["y", "x"], "x is both fed and fetched."),
    ],
)
def test_names_that_clash_however_they_are_spelled(feeds, fetches, message):
    with pytest.raises(InvalidArgumentError) as caught:
        check_names(feeds, fetches)
    assert caught.value.message == message
