"""TFRecord files of recorded requests, replayed when a model is loaded."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
from google.protobuf.message import DecodeError

import protos as pb
from runtime.api import SessionOptions, load_saved_model, set_tensor_limit, tf_records
from runtime.errors import OpError
from runtime.framework.io.record_writer import framed
from runtime.framework.tensor_codec import tensor_to_proto
from server.models.model_version import ModelVersion
from server.models.warmup import REQUESTS_FILE, warm_up
from tests.fuzz.files import Folder
from tests.fuzz.mutate_bytes import mutated_bytes, smaller_bytes
from tests.fuzz.mutate_messages import mutate_message, smaller_messages
from tests.fuzz.served import FIXTURES, TENSOR_BYTES
from tests.fuzz.target import Target, outcome_of

_AS_BYTES = 0.25  # of the files are changed as bytes, so that their checksums are wrong
_RECORD_AS_BYTES = 0.2  # of the records
Log = pb.serving.PredictionLog


class WarmupFiles(Target):
    """Mutated files of one to four requests of every kind."""

    name = "warmup_files"
    inputs_a_child = 2000

    def __init__(self) -> None:
        self._seeds = _seeds()
        self._folder = Folder()

    def start(self) -> None:
        set_tensor_limit(TENSOR_BYTES)
        options = SessionOptions(clusters="off")
        bundle = load_saved_model(options, None, str(FIXTURES / "half_plus_two"), ["serve"])
        self._version = ModelVersion("half_plus_two", 1, bundle)

    def make(self, random_state: random.Random) -> bytes:
        records = []
        for _ in range(random_state.choice((1, 1, 2, 4))):
            log = Log()
            log.CopyFrom(random_state.choice(self._seeds))
            for _ in range(random_state.choice((0, 1, 1, 2, 3))):
                mutate_message(log, random_state, self._seeds)
            record = log.SerializeToString()
            if random_state.random() < _RECORD_AS_BYTES:
                record = mutated_bytes(record, random_state)
            records.append(framed(record))
        data = b"".join(records)
        return mutated_bytes(data, random_state) if random_state.random() < _AS_BYTES else data

    def run(self, data: bytes) -> str:
        folder = self._folder.fill({str(REQUESTS_FILE): data})
        try:
            warm_up(self._version, folder)
        except OpError as error:
            return outcome_of(error)
        return "replayed"

    def smaller(self, data: bytes) -> Iterator[bytes]:
        try:
            path = self._folder.fill({"records": data}) / "records"
            records = [record for _, record in tf_records(str(path), "")]
            logs = [Log.FromString(record) for record in records]
        except (OpError, DecodeError):
            yield from smaller_bytes(data)
            return
        for at, log in enumerate(logs):
            yield b"".join(map(framed, records[:at] + records[at + 1 :]))
            for each in smaller_messages(log):
                changed = [*records[:at], each.SerializeToString(), *records[at + 1 :]]
                yield b"".join(map(framed, changed))


def _seeds() -> list[Log]:
    predict = Log()
    request = predict.predict_log.request
    request.model_spec.name = "half_plus_two"
    request.model_spec.signature_name = "serving_default"
    request.inputs["x"].CopyFrom(tensor_to_proto(np.array([[1], [2]], np.float32)))
    request.output_filter.append("y")
    classify, regress = Log(), Log()
    for log, kind in ((classify, "classify"), (regress, "regress")):
        request = getattr(log, f"{kind}_log").request
        request.model_spec.signature_name = f"{kind}_x_to_y"
        example = request.input.example_list.examples.add()
        example.features.feature["x"].float_list.value.append(1.0)
    context = Log()
    context.CopyFrom(regress)
    given = context.regress_log.request.input
    examples = given.example_list.examples
    given.example_list_with_context.examples.extend(list(examples))
    given.example_list_with_context.context.features.feature["z"].int64_list.value.append(3)
    run = Log()
    step = run.session_run_log.request
    step.feed.add(name="x:0").tensor.CopyFrom(tensor_to_proto(np.ones((1, 1), np.float32)))
    step.fetch.append("y:0")
    step.target.append("y")
    inference = Log()
    inference.multi_inference_log.request.tasks.add(method_name="tensorflow/serving/regress")
    return [predict, classify, regress, context, run, inference]
