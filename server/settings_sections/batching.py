"""The settings of batching: for the server, and for one model."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, model_validator

from server.settings_sections.section import READS_OFF

BatchingMode = Annotated[Literal["parameters", "adaptive", "off"], READS_OFF]


class ModelBatchingSettings(BaseModel):
    """How one model is batched, whatever `batching` says for the server.

    `mode` "parameters" has TensorFlow Serving's parameters, those of `parameters_file` or their
    defaults; "adaptive" has none.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    mode: BatchingMode = "parameters"
    parameters_file: str | None = None

    @model_validator(mode="after")
    def _file_is_used(self) -> ModelBatchingSettings:
        if self.parameters_file is not None and self.mode != "parameters":
            raise ValueError(f"parameters_file has no use with mode {self.mode}")
        return self


class BatchingSettings(BaseModel):
    """How the models that say nothing themselves are batched.

    TF: `--enable_batching`, `--batching_parameters_file`, `--enable_per_model_batching_parameters`
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = False
    mode: Literal["parameters", "adaptive"] = "parameters"
    parameters_file: str | None = None
    per_model_parameters: bool = False

    @model_validator(mode="after")
    def _values_belong_together(self) -> BatchingSettings:
        if self.parameters_file is not None and not self.enabled:
            raise ValueError(
                "batching.parameters_file is set without batching.enabled "
                "(--batching_parameters_file without --enable_batching)"
            )
        if self.parameters_file is not None and self.mode == "adaptive":
            raise ValueError("batching.parameters_file has no use with mode adaptive")
        return self
