"""Which versions the labels of a model that is served may be assigned to.

TF: tensorflow_serving/model_servers/server_core.cc (UpdateModelVersionLabelMap)
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from runtime.errors import FailedPreconditionError
from server.models.manager_options import ManagerOptions
from server.models.model_config import ModelConfig


def check_labels(
    new: ModelConfig,
    old_labels: Mapping[str, int],
    available: Container[int],
    options: ManagerOptions,
) -> None:
    """Raise FailedPreconditionError if a label of a running model must not be assigned.

    A label may point to an `available` version. If `allow_labels_for_unavailable` is set, a new
    label may point to any version, but an existing label may not move to a version that does not
    serve.
    """
    for label, version in new.labels.items():
        is_moved = old_labels.get(label, version) != version
        if version in available or (options.allow_labels_for_unavailable and not is_moved):
            continue
        raise FailedPreconditionError(unavailable_label_text(new.name, version))


def unavailable_label_text(name: str, version: int) -> str:
    """Return TensorFlow Serving's text for a label whose version does not serve."""
    return (
        f"Request to assign label to version {version} of model {name}, "
        "which is not currently available for inference"
    )
