"""ModelBatching: how each signature of each model version is batched, by settings and files.

A version's own parameters are in `assets.extra/batching_params.pbtxt`, or in
`batching_params.pbtxt` beside `saved_model.pb` as in TensorFlow Serving. They are read if
`batching.per_model_parameters` is set; the number of batch threads and their name remain the
server's.

TF: tensorflow_serving/servables/tensorflow/bundle_factory_util.cc (GetPerModelBatchingParams)
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from runtime.api import stateful_ops
from server.models.model_version import ModelVersion
from server.models.signature import Signature
from server.settings import Settings
from server.settings_sections.batching import ModelBatchingSettings
from server.steps.batching.batch_scheduler import BatchScheduler
from server.steps.batching.eligibility import reason_against
from server.steps.batching.parameters import BatchParameters, read_parameters
from server.steps.batching.signature_batches import BatchedSignature, SignatureBatches

PARAMETERS_FILES = (
    Path("assets.extra", "batching_params.pbtxt"),
    Path("batching_params.pbtxt"),
)
_INTERNAL = "__saved_model_"  # TF: saved_model/constants.h (kSavedModelInitOpSignatureKey)
_OFF = ModelBatchingSettings(mode="off")


class ModelBatching:
    """The batching of one server.

    Raises NotFoundError if a file of parameters that the settings name cannot be read, and
    InvalidArgumentError if it is wrong.
    """

    def __init__(self, settings: Settings, scheduler: BatchScheduler) -> None:
        self._scheduler = scheduler
        common = settings.batching
        self._reads_models = common.per_model_parameters
        self._default = _OFF
        if common.enabled:
            self._default = ModelBatchingSettings(
                mode=common.mode, parameters_file=common.parameters_file
            )
        self._models = {
            model.name: model.batching for model in settings.models if model.batching is not None
        }
        self._parameters = {
            each.parameters_file: _read(each.parameters_file)
            for each in (self._default, *self._models.values())
        }

    def batches_of(self, version: ModelVersion, folder: Path) -> dict[str, SignatureBatches]:
        """Return the batches of each signature that requests may name; none if batching is off.

        Raises InvalidArgumentError if the version's own parameters are wrong.
        """
        chosen = self._models.get(version.name, self._default)
        if chosen.mode == "off":
            return {}
        parameters = None
        if chosen.mode == "parameters":
            parameters = self._own(folder, self._parameters[chosen.parameters_file])
        effects = stateful_ops(version.bundle.meta_graph_def)
        return {
            name: self._batches(version, signature, effects[name], parameters)
            for name, signature in version.signatures.items()
            if not name.startswith(_INTERNAL)
        }

    def _batches(
        self,
        version: ModelVersion,
        signature: Signature,
        effects: list[str],
        parameters: BatchParameters | None,
    ) -> SignatureBatches:
        inputs = {alias: spec.shape for alias, spec in signature.inputs.items()}
        outputs = {alias: spec.shape for alias, spec in signature.outputs.items()}
        shapes = {spec.name: spec.shape or () for spec in signature.inputs.values()}
        return SignatureBatches(
            self._scheduler,
            BatchedSignature(version.name, version.version, signature.name, shapes),
            parameters,
            reason_against(inputs, outputs, effects),
        )

    def _own(self, folder: Path, common: BatchParameters) -> BatchParameters:
        if not self._reads_models:
            return common
        for name in PARAMETERS_FILES:
            if (folder / name).is_file():
                return dataclasses.replace(
                    read_parameters(folder / name),
                    num_batch_threads=common.num_batch_threads,
                    thread_pool_name=common.thread_pool_name,
                )
        return common


def _read(path: str | None) -> BatchParameters:
    return BatchParameters() if path is None else read_parameters(Path(path))
