"""A body that is read in slices has the values, or the error, that it has when it is read whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime.foundation.errors import OpError
from runtime.framework.dtypes import DataType
from server.codec.inference_protocol import json_infer
from server.codec.large import array_shape, number_slices, sliced_body
from server.codec.serving import requests
from server.codec.session import json_steps
from server.codec.session.tensor_reader import read_shape
from server.steps.step_request import StepRequest

TYPES = [
    DataType.FLOAT, DataType.DOUBLE, DataType.HALF, DataType.BFLOAT16, DataType.INT8,
    DataType.UINT8, DataType.INT16, DataType.INT32, DataType.INT64, DataType.UINT32,
    DataType.UINT64, DataType.BOOL, DataType.STRING, DataType.COMPLEX64, DataType.QINT8,
]  # fmt: skip
PLAIN = ["0", "1", "-1", "7", "127", "128", "255", "-129", "0.5", "-0.0", "1e3", "0.1", "3.25E-2"]
ODD = [
    "-0", "1e400", "-1e400", "1e-400", "5e-324", "9007199254740993", "9223372036854775807",
    "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551615",
    "18446744073709551616", "1" * 25, "-" + "1" * 25, "3.4028236e38", "0.1e1", "1e5", "1E+5",
    "123456789012345678901234567890.5", "2.2250738585072011e-308",
]  # fmt: skip
WORDS = ["NaN", "Infinity", "-Infinity", "-NaN", "Inf", "-Inf"]
OTHER = ["true", "null", '"NaN"', '"a"', '{"b64": "AA=="}', "{}", "[]", "[1]", "01", "1.", "+1", ""]
JUNK = [b"[", b"]", b",", b" ", b"1", b"-", b".", b"e", b"N", b"a", b'"', b"{", b"}", b":", b"\\"]


@st.composite
def nested(draw: st.DrawFn) -> str:
    """A regular array, or one with one odd element, or a ragged one."""
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    pools = [PLAIN, PLAIN[:8], [*PLAIN, *WORDS[:3]], [*PLAIN, *ODD], [*PLAIN, *WORDS]]
    pool = draw(st.sampled_from(pools))
    space = draw(st.sampled_from(["", " ", "\n\t"]))
    odd_at = draw(st.none() | st.integers(0, int(np.prod(shape)) - 1))
    odd = draw(st.sampled_from([*ODD, *WORDS, *OTHER]))
    numbers = draw(
        st.lists(st.sampled_from(pool), min_size=int(np.prod(shape)), max_size=int(np.prod(shape)))
    )
    if odd_at is not None:
        numbers[odd_at] = odd
    parts = numbers
    for size in reversed(shape):
        parts = [
            f"[{space}" + f",{space}".join(parts[i : i + size]) + f"{space}]"
            for i in range(0, len(parts), size)
        ]
    return parts[0]


def members(draw: st.DrawFn, names: str) -> str:
    return ", ".join(f'"{name}": {draw(nested())}' for name in names)


@st.composite
def damaged(draw: st.DrawFn, document: str) -> bytes:
    """`document`, sometimes with a few characters inserted, replaced or removed."""
    text = document.encode()
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        place = draw(st.integers(0, len(text)))
        removed = draw(st.integers(0, 1))
        text = text[:place] + draw(st.sampled_from([b"", *JUNK])) + text[place + removed :]
    return text


@st.composite
def predict_bodies(draw: st.DrawFn) -> bytes:
    key = draw(st.sampled_from(["instances", "inputs"]))
    form = draw(st.sampled_from(["plain", "object", "objects", "two", "elsewhere"]))
    if form == "plain":
        document = f'{{"{key}": {draw(nested())}}}'
    elif form == "object":
        document = f'{{"{key}": {{{members(draw, "xy")}}}}}'
    elif form == "objects":
        rows = ", ".join(f"{{{members(draw, 'xy')}}}" for _ in range(draw(st.integers(1, 3))))
        document = f'{{"signature_name": "a\\"b", "{key}": [{rows}]}}'
    elif form == "two":
        document = f'{{"{key}": {draw(nested())}, "instances": {draw(nested())}}}'
    else:
        document = f'{{"signature_name": {draw(nested())}, "{key}": {draw(nested())}}}'
    return draw(damaged(document))


@st.composite
def session_bodies(draw: st.DrawFn) -> bytes:
    form = draw(st.sampled_from(["plain", "typed", "list", "typed list", "twice"]))
    if form == "plain":
        feeds = f"{{{members(draw, 'xy')}}}"
    elif form == "typed":
        shape = draw(st.sampled_from(["[2, 2]", "[4]", "[]", "[1, 2, 3]", "[-1]"]))
        feeds = f'{{"x": {{"shape": {shape}, "data": {draw(nested())}}}, {members(draw, "y")}}}'
    elif form == "list":
        feeds = f"[{', '.join(draw(st.lists(nested(), max_size=3)))}]"
    elif form == "typed list":
        feeds = f'[{{"dtype": "int32", "data": {draw(nested())}}}, {draw(nested())}]'
    else:
        feeds = f'{{{members(draw, "xx")}, "y": 1}}'
    key = draw(st.sampled_from(["feeds", "feeds", "feeds", "fetches"]))
    return draw(damaged(f'{{"handle": 1, "{key}": {feeds}}}'))


@st.composite
def infer_bodies(draw: st.DrawFn) -> bytes:
    names = ["x", *draw(st.sampled_from(["", "y"]))]
    inputs = []
    for name in names:
        shape = draw(st.sampled_from(["[2, 2]", "[4]", "[1]", "[]", "[1, 2, 3]", "[-1]"]))
        held = {"name": f'"{name}"', "datatype": '"FP32"', "shape": shape, "data": "[1]"}
        held["data"] = draw(nested())
        if draw(st.integers(0, 3)) == 0:
            held[draw(st.sampled_from([*held, "parameters"]))] = draw(
                nested() | nested().map('[{{"q": {}}}]'.format) | nested().map('{{"q": {}}}'.format)
            )
        inputs.append(", ".join(f'"{key}": {value}' for key, value in held.items()))
    items = ", ".join(f"{{{each}}}" for each in inputs)
    form = draw(st.sampled_from(['{{"inputs": [{}]}}'] * 4 + ['{{"inputs": {}, "id": "a"}}']))
    return draw(damaged(form.format(items)))


def outcome(read: Callable[[], dict[str, Any]]) -> Any:
    """The arrays by name, each as something to compare, or the error."""
    try:
        arrays = read()
    except OpError as error:
        return type(error), error.message
    return {name: (a.dtype, a.shape, comparable(a)) for name, a in arrays.items()}


def comparable(array: np.ndarray) -> Any:
    if array.dtype == object:
        return array.tolist()
    # The sign of a NaN is kept; that of zero too.
    return np.signbit(array.real).tobytes() + np.ascontiguousarray(array).tobytes()


def read_predict(body: bytes, inputs: dict[str, DataType], strict: bool) -> dict[str, np.ndarray]:
    document = requests.parse_document(body)
    name = requests.signature_name(document)
    return requests.predict_inputs(document, name, strict, SimpleNamespace(input_types=inputs))


def read_step(body: bytes, inputs: dict[str, DataType], kind: str) -> dict[str, np.ndarray]:
    step = StepRequest()

    def tensor_info(name: str) -> tuple[DataType, None]:
        return inputs.get(name, DataType.FLOAT), None

    options = SimpleNamespace(
        feed=list(inputs), fetch=[], target=[], run_options=SimpleNamespace(
            trace_level=0, output_partition_graphs=False, inter_op_thread_pool=0
        )
    )  # fmt: skip
    prepared = SimpleNamespace(options=options, compiled=None, by_name=lambda v: by_name(inputs, v))
    session = SimpleNamespace(callable=lambda handle: prepared)
    opened: Any = SimpleNamespace(session=session, tensor_info=tensor_info)
    getattr(json_steps.JsonSteps("json", "string"), kind)(body, step, opened)
    return dict(step.feeds)


def read_infer(body: bytes, inputs: dict[str, DataType]) -> dict[str, np.ndarray]:
    arrays = {}
    for each in json_infer.read_infer_request(body, None).inputs:
        data_type = inputs.get(each.name, DataType.FLOAT)
        arrays[each.name] = each.read(data_type, read_shape(each.shape, data_type))
    return arrays


def by_name(inputs: dict[str, DataType], values: list[Any]) -> dict[str, Any]:
    if len(values) != len(inputs):
        raise OpError(f"{len(values)} feeds")
    return dict(zip(inputs, values, strict=True))


class Slicing:
    """Switches slicing on, for arrays of any size, or off."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self.arrays = 0
        made = sliced_body.NumberArray

        def counted(*arguments: Any) -> Any:
            self.arrays += 1
            return made(*arguments)

        monkeypatch.setattr(sliced_body, "NumberArray", counted)
        monkeypatch.setattr(number_slices, "SLICE_BYTES", 24)
        monkeypatch.setattr(array_shape, "STEP_BYTES", 16)
        monkeypatch.setattr(sliced_body, "STEP_BYTES", 64)
        monkeypatch.setattr(sliced_body, "MIN_ARRAY_BYTES", 4)
        monkeypatch.setattr(sliced_body, "_BYTES_PER_SEGMENT", 1)

    def switch(self, on: bool) -> None:
        for module in (requests, json_steps, json_infer):
            self._patch.setattr(module, "LARGE_BODY_BYTES", 0 if on else 1 << 40)


@pytest.fixture(params=["simdjson", "orjson"])
def slicing(request: pytest.FixtureRequest) -> Iterator[Slicing]:
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "orjson":
            patch.setattr(number_slices, "slice_parser", lambda: number_slices.parse_with_orjson)
        made = Slicing(patch)
        yield made
        assert made.arrays > 100  # of the examples, enough are read in slices


def same(slicing: Slicing, read: Callable[[], dict[str, Any]]) -> None:
    """Compare both ways of reading, in values and errors."""
    slicing.switch(False)
    whole = outcome(read)
    slicing.switch(True)
    assert outcome(read) == whole


INPUTS = st.fixed_dictionaries(
    {"x": st.sampled_from(TYPES)}, optional={"y": st.sampled_from(TYPES)}
)


FIXTURE = [HealthCheck.function_scoped_fixture]  # each example sets the switch


@settings(max_examples=400, deadline=None, suppress_health_check=FIXTURE)
@given(body=predict_bodies(), inputs=INPUTS, strict=st.booleans())
def test_predict(slicing: Slicing, body: bytes, inputs: dict[str, DataType], strict: bool) -> None:
    same(slicing, lambda: read_predict(body, inputs, strict))


@settings(max_examples=400, deadline=None, suppress_health_check=FIXTURE)
@given(
    body=session_bodies(),
    inputs=INPUTS,
    kind=st.sampled_from(["read_run", "read_run_callable"]),
)
def test_steps(slicing: Slicing, body: bytes, inputs: dict[str, DataType], kind: str) -> None:
    same(slicing, lambda: read_step(body, inputs, kind))


@settings(max_examples=400, deadline=None, suppress_health_check=FIXTURE)
@given(body=infer_bodies(), inputs=INPUTS)
def test_infer(slicing: Slicing, body: bytes, inputs: dict[str, DataType]) -> None:
    same(slicing, lambda: read_infer(body, inputs))
