"""The renamed descriptors."""

from __future__ import annotations

from google.protobuf import message_factory

import protos as pb
from server.rpc.wire_names import SERVICES, wire_pool


def test_messages_have_the_names_of_tensorflow_and_the_same_fields() -> None:
    pool = wire_pool()
    for ours, wire in (
        (pb.TensorProto, "tensorflow.TensorProto"),
        (pb.serving.PredictRequest, "tensorflow.serving.PredictRequest"),
        (pb.serving.ReloadConfigRequest, "tensorflow.serving.ReloadConfigRequest"),
        (pb.RunStepRequest, "tensorflow.RunStepRequest"),
        (pb.SignatureDef, "tensorflow.SignatureDef"),
    ):
        theirs = pool.FindMessageTypeByName(wire)
        assert {f.number: (f.name, f.type) for f in theirs.fields} == {
            f.number: (f.name, f.type) for f in ours.DESCRIPTOR.fields
        }
    code = pool.FindEnumTypeByName("tensorflow.error.Code")
    assert code.values_by_name["DATA_LOSS"].number == 15
    status = pool.FindMessageTypeByName("tensorflow.serving.StatusProto")
    assert status.fields_by_name["error_code"].enum_type.full_name == "tensorflow.error.Code"


def test_no_name_of_ours_is_left() -> None:
    pool = wire_pool()
    pending = [pool.FindServiceByName(service.name).file for service in SERVICES]
    seen = set()
    while pending:
        file = pending.pop()
        if file.name not in seen:
            seen.add(file.name)
            pending += file.dependencies
            assert not file.package.startswith("runstep"), file.name
            assert b"runstep" not in file.serialized_pb, file.name
    assert len(seen) > 10


def test_a_message_of_the_pool_is_read_by_ours() -> None:
    wire = wire_pool().FindMessageTypeByName("tensorflow.serving.PredictRequest")
    theirs = message_factory.GetMessageClass(wire)()
    theirs.model_spec.name = "m"
    theirs.inputs["x"].float_val.append(2)
    ours = pb.serving.PredictRequest.FromString(theirs.SerializeToString())
    assert ours.model_spec.name == "m" and list(ours.inputs["x"].float_val) == [2.0]
