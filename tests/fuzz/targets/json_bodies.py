"""JSON bodies of every call, through the application and, where there is one, the short way.

The short way and the usual one must give the same answer.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from server.rest.session_docs import half_plus_two_graph, square_of_y_graph
from tests.fuzz.children import enter
from tests.fuzz.mutate_bytes import join_frames, mutated_bytes, smaller_bytes, split_frames
from tests.fuzz.mutate_json import mutated_json, smaller_json
from tests.fuzz.served import Answer, Served, graph_of_types, wrong
from tests.fuzz.target import Target
from tests.integration.rest_server import encoded

_MODELS = ("half_plus_two", "string_lookup", "counter", "mlp_small", "text_vectorization")
_HALF = "/v1/models/half_plus_two"
_KEPT, _OWN = "/v1/sessions/KEPT", "/v1/sessions/OWN"  # a session of the child; of one input
_WARM_RUNS = 20  # until a step is known to be short
# A header that changes nothing but that plain requests don't have, so that the short way declines.
_USUAL_WAY = [(b"x-timeout-ms", b"30000"), (b"content-type", b"application/json")]
_COMPARED = (":predict", ":run", "/infer")
_EXAMPLE = {"x": 1.0}
_TYPED = {"dtype": "float32", "shape": [2], "data": [1, 2]}
_SEEDS: tuple[tuple[str, Any], ...] = (
    (f"{_HALF}:predict", {"instances": [1.0, 2.0, 5.0]}),
    (f"{_HALF}:predict", {"instances": [{"x": 1.0}, {"x": 2}]}),
    (f"{_HALF}:predict", {"inputs": [1.0, 2.0], "signature_name": "serving_default"}),
    (f"{_HALF}/versions/1:predict", {"inputs": {"x": [1.5]}}),
    (f"{_HALF}:classify", {"signature_name": "classify_x_to_y", "examples": [_EXAMPLE, _EXAMPLE]}),
    (
        f"{_HALF}:regress",
        {
            "signature_name": "regress_x_to_y",
            "context": {"x": 2.0},
            "examples": [{"x": [1.0]}, {"z": {"b64": "aGk="}, "n": 3, "s": "text"}],
        },
    ),
    ("/v1/models/string_lookup:predict", {"instances": ["a", {"b64": "YQ=="}, "b"]}),
    ("/v1/models/text_vectorization:predict", {"instances": [["some words"], ["more"]]}),
    ("/v1/models/mlp_small:predict", {"instances": [[0.5] * 4, [1] * 4]}),
    ("/v1/models/counter:predict", {"signature_name": "incr_counter", "inputs": {}}),
    ("/v2/models/half_plus_two/infer",
     {"id": "1", "inputs": [{"name": "x", "shape": [2], "datatype": "FP32", "data": [1.0, 2.0]}],
      "outputs": [{"name": "y", "parameters": {"binary_data": True, "classification": 2}}],
      "parameters": {"priority": 1, "timeout": 500000, "binary_data_output": False}}),
    ("/v2/models/string_lookup/infer",
     {"inputs": [{"name": "keras_tensor", "shape": [2, 1], "datatype": "BYTES",
                  "data": [["a"], ["b"]]}],
      "parameters": {"signature_name": "serving_default"}}),
    ("/v2/repository/index", {"ready": True}),
    ("/v2/repository/models/half_plus_two/load", {"parameters": {"config": "{}"}}),
    ("/v2/logging", {"log_info": True, "log_verbose_level": 0}),
    ("/v2/trace/setting", {"trace_level": ["OFF"]}),
    (f"{_KEPT}:run", {"feeds": {"x:0": [1.0, 2.0]}, "fetches": ["y:0"]}),
    (f"{_KEPT}:run", {"feeds": {"x": _TYPED}, "fetches": ["y"], "targets": ["y"]}),
    (f"{_KEPT}:run", {"feeds": {"x:0": {"dtype": "float32", "shape": [1], "b64": "AACAPw=="}},
                      "fetches": ["y:0"], "priority": "low",
                      "options": {"timeout_in_ms": 500, "trace_level": "FULL_TRACE"}}),
    (f"{_KEPT}:run", {"feeds": {"in_7:0": ["a", {"b64": "AA=="}]}, "fetches": ["out_7:0"]}),
    (f"{_KEPT}:run", {"feeds": {"in_8:0": [[1, 2], [3, 4]]}, "fetches": ["out_8:0"]}),
    (f"{_KEPT}:run", {"feeds": {"in_10": [True], "in_3": [[1], [2]], "in_9": 7, "in_14": [0.5]},
                      "fetches": ["out_10", "out_3", "out_9", "out_14"]}),
    (f"{_OWN}:extend", {"graph_def": encoded(square_of_y_graph()), "graph_version": 0}),
    (f"{_OWN}:keepAlive", {"lease_seconds": 30}),
    (f"{_OWN}:cancel", {"request_id": "abc"}),
    (f"{_OWN}:partialRunSetup", {"feeds": ["x:0"], "fetches": ["y:0"], "targets": []}),
    (f"{_OWN}:partialRun", {"partial_run_handle": "PARTIAL", "feeds": {"x:0": [1.0]},
                            "fetches": ["y:0"]}),
    (f"{_OWN}:makeCallable", {"options": {"feed": ["x:0"], "fetch": ["y:0"], "target": [],
                                          "run_options": {"timeout_in_ms": 400}}}),
    (f"{_OWN}:runCallable", {"handle": 1, "feeds": [[1.0, 2.0]]}),
    (f"{_OWN}:releaseCallable", {"handle": 1}),
    (f"{_OWN}:close", {}),
    ("/v1/sessions", {"graph_def": encoded(half_plus_two_graph()), "lease_seconds": 20,
                      "name": "one", "config": {"inter_op_parallelism_threads": 1}}),
    ("/v1/sessions", {"model": "half_plus_two", "version": 1, "tags": ["serve"],
                      "config": {"session_inter_op_thread_pool": [{"num_threads": 1}]}}),
    ("/v1/sessions", {"meta_graph_def": "", "config": {"graph_options": {}}}),
)  # fmt: skip
_KEYS = (
    *sorted({key for _, body in _SEEDS for key in body}),
    *("x", "x:0", "y:0", "dtype", "shape", "data", "b64", "in_7:0", "label"),
)


class JsonBodies(Target):
    """Mutated documents to the calls of REST."""

    name = "json_bodies"
    inputs_a_child = 2000

    def start(self) -> None:
        self._served = Served(_MODELS)
        self._graph = half_plus_two_graph()
        self._graph.MergeFrom(graph_of_types())
        self._kept = self._open()
        for path, document in _SEEDS:
            if path.endswith(_COMPARED):
                for _ in range(_WARM_RUNS):
                    self._served.answer_now(self._in_child(path), json.dumps(document).encode())
                    self._post(self._in_child(path), json.dumps(document).encode())

    def make(self, random_state: random.Random) -> bytes:
        path, document = random_state.choice(_SEEDS)
        if random_state.random() < 0.03:
            path = mutated_bytes(path.encode(), random_state).decode(errors="replace")
        body = mutated_json(document, random_state, _KEYS)
        return join_frames([path.encode(), body])

    def run(self, data: bytes) -> str:
        path, body = split_frames(data)
        target = path.decode()
        own = None
        if _OWN in target:
            own = self._open()
            target = target.replace(_OWN, own)
            body = body.replace(b"PARTIAL", self._partial_run(own))
            self._post(f"{own}:makeCallable", b'{"options": {"feed": ["x:0"], "fetch": ["y:0"]}}')
        target = self._in_child(target)
        answer = self._post(target, body)
        outcome = wrong(answer) or self._compared(target, body, answer) or str(answer.status)
        if answer.status == 504:
            enter("after the deadline")
            self._served.until_idle()
        created = answer.headers.get(b"location")
        for session in (own, created and created.decode()):
            if session:
                self._post(f"{session}:close", b"{}")
        return outcome

    def smaller(self, data: bytes) -> Iterator[bytes]:
        path, body = split_frames(data)
        for smaller in (*smaller_json(body), *smaller_bytes(body)):
            yield join_frames([path, smaller])

    def _in_child(self, path: str) -> str:
        return path.replace(_KEPT, self._kept)

    def _open(self) -> str:
        document = {"graph_def": encoded(self._graph)}
        return f"/v1/sessions/{self._served.json('POST', '/v1/sessions', document)['session']}"

    def _partial_run(self, session: str) -> bytes:
        document = {"feeds": ["x:0"], "fetches": ["y:0"]}
        answer = self._served.json("POST", f"{session}:partialRunSetup", document)
        return str(answer["partial_run_handle"]).encode()

    def _post(self, path: str, body: bytes) -> Answer:
        return self._served.request("POST", path, _USUAL_WAY, body)

    def _compared(self, path: str, body: bytes, usual: Answer) -> str:
        """Return how the answer at once differs from the usual one, if there is one."""
        if not path.endswith(_COMPARED) or "counter" in path:
            return ""
        now = self._served.answer_now(path, body)
        if now is None:
            return ""
        if wrong(now):
            return wrong(now)
        one, other = _content(now), _content(usual)
        return "" if one == other else f"DIFFERS {one!r:.200} is at once, {other!r:.200} the usual"


def _content(answer: Answer) -> object:
    """Return the status and the document of an answer without the request's id."""
    if answer.status < 400:
        return answer.status, answer.body
    document = json.loads(answer.body, parse_constant=str)  # NaN would differ from itself
    document.pop("request_id", None)
    return answer.status, document
