"""Work on served models: predictions, large and poisoned bodies, steps of low priority."""

from __future__ import annotations

import base64
import gzip
import json
import random

import numpy as np

from bench.soak.client import JSON, Client, check_close, check_equal
from bench.soak.models import DENSE, ROWS, WIDTH, dense_answer, digits_example
from bench.soak.record import WrongAnswer
from bench.soak.work import Work

HALF = "/v1/models/half_plus_two"
POISONED: tuple[tuple[str, bytes], ...] = (
    (f"{HALF}:predict", b""),
    (f"{HALF}:predict", b"{"),
    (f"{HALF}:predict", b'{"instances": [1, 2'),
    (f"{HALF}:predict", b'{"instances": [1, "two", 3]}'),
    (f"{HALF}:predict", b'{"instances": [[1], [2, 3]]}'),
    (f"{HALF}:predict", b'{"instances": [' + b"[" * 5000 + b"]" * 5000 + b"]}"),
    (f"{HALF}:predict", b'{"instances": [1], "inputs": [1]}'),
    (f"{HALF}:predict", b"\xff\xfe\x00" * 100),
    (f"{HALF}:predict", b'{"instances": [' + b"1," * 20000 + b"nothing]}"),
    (f"{HALF}:classify", b'{"examples": [{"x": {"b64": "!"}}]}'),
    (f"{HALF}:regress", b'{"examples": 3}'),
    (f"/v1/models/{DENSE}:predict", b'{"instances": [[1, 2, 3]]}'),
)


class Versions:
    """Which versions of the changing model may answer now. One thread writes it."""

    def __init__(self) -> None:
        self.allowed: frozenset[int] = frozenset({1})


class ModelWork:
    """The kinds of work of one thread."""

    def __init__(self, seed: int, versions: Versions) -> None:
        self._random = random.Random(seed)
        self._numbers = np.random.default_rng(seed)
        self._versions = versions
        self.small = (
            Work("models: predict", 40, self._row),
            Work("models: predict columns", 15, self._columns),
            Work("models: classify", 10, self._classify),
            Work("models: regress", 10, self._regress),
            Work("models: digits", 10, self._digits),
            Work("models: gzip", 5, self._gzip),
            Work("poisoned: bodies", 10, self._poisoned),
        )
        self.dense = (
            Work("clusters: dense", 1, self._dense),
            Work("low: dense", 0.3, self._dense_low),
        )
        self.large = (
            Work("large: JSON", 3, self._large),
            Work("large: wrong JSON", 1, self._large_wrong),
        )

    def _few(self) -> list[float]:
        return [self._random.randrange(-1000, 1000) / 4 for _ in range(self._random.randint(1, 8))]

    def _row(self, client: Client) -> None:
        x = self._few()
        got = client.call(f"{HALF}:predict", {"instances": x})
        check_equal(got, {"predictions": [each / 2 + 2 for each in x]}, "predict")

    def _columns(self, client: Client) -> None:
        x = self._few()
        got = client.call(f"{HALF}:predict", {"inputs": {"x": x}})
        check_equal(got, {"outputs": [each / 2 + 2 for each in x]}, "predict")

    def _classify(self, client: Client) -> None:
        x = self._few()
        body = {"signature_name": "classify_x_to_y", "examples": [{"x": each} for each in x]}
        got = client.call(f"{HALF}:classify", body)
        scores = [[pair[1] for pair in row] for row in got["results"]]
        check_equal(scores, [[each / 2 + 2] for each in x], "classify")

    def _regress(self, client: Client) -> None:
        x = self._few()
        body = {"signature_name": "regress_x_to_y", "examples": [{"x": each} for each in x]}
        got = client.call(f"{HALF}:regress", body)
        check_equal(got, {"results": [each / 2 + 2 for each in x]}, "regress")

    def _digits(self, client: Client) -> None:
        body, expected = digits_example()
        got = json.loads(client.post("/v1/models/digits:predict", body))
        check_close(got["predictions"], expected, "digits")

    def _gzip(self, client: Client) -> None:
        x = self._few()
        body = gzip.compress(json.dumps({"instances": x}).encode())
        content = client.post(f"{HALF}:predict", body, JSON | {"Content-Encoding": "gzip"})
        expected = {"predictions": [each / 2 + 2 for each in x]}
        check_equal(json.loads(content), expected, "predict of a compressed body")

    def _poisoned(self, client: Client) -> None:
        client.refused(*self._random.choice(POISONED), 400, "INVALID_ARGUMENT")

    def _dense(self, client: Client) -> None:
        self._check_dense(client, JSON)

    def _dense_low(self, client: Client) -> None:
        self._check_dense(client, JSON | {"X-Priority": "low"})

    def _check_dense(self, client: Client, headers: dict[str, str]) -> None:
        rows = self._random.choice((1, 3, ROWS, ROWS, ROWS))
        x = self._numbers.normal(size=(rows, WIDTH)).astype(np.float32)
        allowed = self._versions.allowed
        body = {"instances": x.tolist()}
        got = np.array(
            client.call(f"/v1/models/{DENSE}:predict", body, headers=headers)["predictions"],
            np.float32,
        )
        allowed |= self._versions.allowed
        plain = dense_answer(x)
        if got.shape != plain.shape:
            raise WrongAnswer(f"dense: shape {got.shape} instead of {plain.shape}")
        version = round(float((got - plain).mean()))
        if version not in allowed:
            raise WrongAnswer(f"dense: version {version} answered, expected one of {allowed}")
        check_close(got - version, plain, "dense")

    def _large(self, client: Client) -> None:
        count = self._random.choice((50_000, 200_000, 1_000_000))
        x = self._numbers.integers(-(1 << 20), 1 << 20, count).astype(np.float32) / 4
        body = {"instances": x.tolist()}
        got = client.call(f"{HALF}:predict", body)["predictions"]
        if not np.array_equal(np.array(got, np.float32), x / 2 + 2):
            raise WrongAnswer(f"a large body of {count} numbers")

    def _large_wrong(self, client: Client) -> None:
        numbers = b"1.5," * self._random.choice((50_000, 500_000))
        bad = self._random.choice((b"true", b"[1]", b'"text"', b"nothing"))
        body = b'{"instances": [' + numbers + bad + b"]}"
        client.refused(f"{HALF}:predict", body, 400, "INVALID_ARGUMENT")


def base64_floats(x: np.ndarray) -> dict[str, object]:
    """Return a tensor of float32 as session bodies carry it."""
    text = base64.b64encode(x.astype("<f4").tobytes()).decode()
    return {"dtype": "float32", "shape": list(x.shape), "b64": text}
