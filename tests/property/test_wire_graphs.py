"""Damaged graphs from the wire give a client error, never a server error."""

import base64

from hypothesis import given, settings
from hypothesis import strategies as st

import protos as pb
from server.rest.session_docs import half_plus_two_graph
from tests.integration.rest_server import RestServer, check_error, encoded, with_server

GRAPH = half_plus_two_graph().SerializeToString(deterministic=True)
RUN = {"feeds": {"x:0": [1.0]}, "fetches": ["y:0"], "options": {"timeout_in_ms": 5000}}
FLIPS = st.lists(st.integers(0, len(GRAPH) * 8 - 1), min_size=1, max_size=3)


def damaged(flips: list[int]) -> str:
    content = bytearray(GRAPH)
    for bit in flips:
        content[bit // 8] ^= 1 << bit % 8
    return base64.b64encode(content).decode()


@settings(max_examples=10, deadline=None)
@given(st.lists(FLIPS, min_size=20, max_size=20))
def test_flipped_bits_are_the_client_s_fault(graphs):
    async def scenario(server: RestServer) -> None:
        for flips in graphs:
            answer = await server.post("/v1/sessions", {"graph_def": damaged(flips)})
            if answer.status_code == 201:
                answer = await server.post(f"{answer.headers['location']}:run", RUN)
            assert answer.status_code < 500, (flips, answer.text)

    with_server(scenario)


def test_a_placeholder_of_no_type_is_refused():
    graph = half_plus_two_graph()
    graph.node[0].attr["dtype"].type = pb.DT_INVALID
    del graph.node[1:]

    async def scenario(server: RestServer) -> None:
        session = await server.create({"graph_def": encoded(graph)})
        answer = await server.post(f"{session}:run", {"feeds": {"x": 1}, "fetches": ["x"]})
        check_error(answer, 400, "INVALID_ARGUMENT", "No tensor has values of type invalid")

    with_server(scenario)
