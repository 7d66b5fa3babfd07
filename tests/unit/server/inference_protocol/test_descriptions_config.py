from types import SimpleNamespace

import pytest

from server.inference_protocol.descriptions import model_config
from server.models.version_policy import (
    AllVersions,
    EitherVersions,
    LatestVersions,
    SpecificVersions,
)
from server.steps.batching.parameters import BatchParameters


def config_of(policy=None, **batches):
    signature = SimpleNamespace(name="serve", inputs={}, outputs={})
    served = SimpleNamespace(
        name="half",
        signatures={"serve": signature},
        batches={name: SimpleNamespace(**each) for name, each in batches.items()},
    )
    return model_config(served, None, policy)


@pytest.mark.parametrize(
    ("policy", "answer"),
    [
        (LatestVersions(2), {"latest": {"num_versions": 2}}),
        (LatestVersions(0), {"latest": {"num_versions": 1}}),
        (AllVersions(), {"all": {}}),
        (SpecificVersions((3, 5)), {"specific": {"versions": [3, 5]}}),
        (EitherVersions(AllVersions(), LatestVersions(1)), {"latest": {"num_versions": 1}}),
    ],
)
def test_the_version_policy_is_that_of_the_model(policy, answer):
    assert config_of(policy)["version_policy"] == answer


def test_a_model_that_is_not_configured_any_more_has_no_version_policy():
    assert "version_policy" not in config_of(None)


@pytest.mark.parametrize(
    ("parameters", "answer"),
    [
        (None, {}),
        (
            BatchParameters(max_batch_size=8, batch_timeout_micros=7),
            {"preferred_batch_size": [8], "max_queue_delay_microseconds": 7},
        ),
        (
            BatchParameters(max_batch_size=8, allowed_batch_sizes=(4, 8)),
            {"preferred_batch_size": [4, 8], "max_queue_delay_microseconds": 0},
        ),
    ],
)
def test_a_batched_signature_has_its_parameters(parameters, answer):
    batches = {"refused": None, "parameters": parameters}
    assert config_of(serve=batches)["dynamic_batching"] == answer


def test_a_signature_that_is_not_batched_has_none():
    refused = {"refused": "it has no inputs", "parameters": None}
    assert "dynamic_batching" not in config_of(serve=refused)
    assert "dynamic_batching" not in config_of()
