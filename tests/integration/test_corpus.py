"""SavedModels exported by TensorFlow and Keras give TensorFlow's answers."""

from __future__ import annotations

import numpy as np
import pytest

import protos as pb
from runtime.api import SessionOptions, load_saved_model
from tests.saved_model_corpus import (
    FIXTURES,
    fixture_names,
    read_calls,
    relative_difference,
    run_call,
)

EXECUTORS = ("DEFAULT", "DATAFLOW")


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("name", fixture_names())
def test_answers_are_tensorflows(name: str, executor: str) -> None:
    config = pb.ConfigProto(inter_op_parallelism_threads=-1)
    config.experimental.executor_type = executor
    bundle = load_saved_model(SessionOptions(config=config), None, str(FIXTURES / name), {"serve"})
    calls = read_calls(FIXTURES / name)
    assert calls
    for call in calls:
        got = run_call(bundle, call)
        for key, want in call.outputs.items():
            assert relative_difference(got[key], want) < 1e-4, (call.signature, key)


def test_nan_in_place_of_a_number_is_no_small_difference() -> None:
    want = np.array([1.0, 2.0], np.float32)
    assert relative_difference(np.array([1.0, np.nan], np.float32), want) == np.inf
    assert relative_difference(np.array([1.0, 2.5], np.float32), want) == 0.25
