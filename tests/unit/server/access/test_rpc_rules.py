import pytest

from server.access.http_rules import Need
from server.access.rpc_rules import rpc_need_of


@pytest.mark.parametrize(
    ("path", "need"),
    [
        ("/tensorflow.MasterService/RunStep", Need.GRAPHS),
        ("/tensorflow.serving.PredictionService/Predict", Need.PREDICT),
        ("/tensorflow.serving.PredictionService/MultiInference", Need.PREDICT),
        ("/tensorflow.serving.PredictionService/GetModelMetadata", Need.KNOWN),
        ("/tensorflow.serving.ModelService/GetModelStatus", Need.KNOWN),
        ("/tensorflow.serving.SessionService/SessionRun", Need.SESSIONS),
        ("/inference.GRPCInferenceService/ServerReady", Need.NOTHING),
        ("/inference.GRPCInferenceService/ModelReady", Need.KNOWN),
        ("/inference.GRPCInferenceService/ModelInfer", Need.PREDICT),
        ("/inference.GRPCInferenceService/ModelStreamInfer", Need.PREDICT),
        ("/inference.GRPCInferenceService/RepositoryModelLoad", Need.KNOWN),
        ("/grpc.health.v1.Health/Watch", Need.NOTHING),
        ("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", Need.NOTHING),
    ],
)
def test_what_a_call_requires(path: str, need: Need) -> None:
    assert rpc_need_of(path) is need


def test_a_call_without_a_row_requires_a_role() -> None:
    assert rpc_need_of("/another.Service/Call") is Need.PREDICT
    assert rpc_need_of("/tensorflow.serving.PredictionService/GetModelMetadataX") is Need.PREDICT
    assert rpc_need_of("/grpcXhealth.v1.Health/Check") is Need.PREDICT
