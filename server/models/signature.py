"""The signatures of a model as tables of names, types and shapes, computed once.

TF: tensorflow/core/protobuf/meta_graph.proto (SignatureDef, TensorInfo)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence

import protos as pb
from runtime.api import DataType, dtypes, shape_from_proto
from runtime.errors import InvalidArgumentError


@dataclasses.dataclass(frozen=True, slots=True)
class TensorSpec:
    """One input or output.

    `shape` is None if the rank is unknown, and has −1 for an unknown dimension.
    """

    name: str
    data_type: DataType
    shape: tuple[int, ...] | None


class Signature:
    """One SignatureDef; aliases are in alphabetical order, in responses too."""

    def __init__(self, name: str, signature_def: pb.SignatureDef) -> None:
        self.name = name
        self.method_name = signature_def.method_name
        self.inputs = _specs(signature_def.inputs)
        self.outputs = _specs(signature_def.outputs)
        self.input_types = {alias: spec.data_type for alias, spec in self.inputs.items()}
        self.feed_names = {alias: spec.name for alias, spec in self.inputs.items()}
        self.fetch_names = {alias: spec.name for alias, spec in self.outputs.items()}
        self.output_aliases = tuple(self.outputs)
        self.defaults = dict(
            signature_def.defaults
        )  # of inputs that a PredictRequest may leave out

    def check_inputs(self, sent: Collection[str]) -> None:
        """Raise InvalidArgumentError unless `sent` is equal to the aliases of the inputs."""
        if sent == self.inputs.keys():
            return
        extra = sorted(set(sent) - self.inputs.keys())
        missing = sorted(self.inputs.keys() - set(sent))
        raise InvalidArgumentError(
            f"input size does not match signature: {len(sent)}!={len(self.inputs)} "
            f"len({{{','.join(sorted(sent))}}}) != len({{{','.join(self.inputs)}}}). "
            f"Sent extra: {{{','.join(extra)}}}. "
            f"Missing but required: {{{','.join(missing)}}}."
        )

    def check_outputs(self, aliases: Sequence[str]) -> None:
        """Raise InvalidArgumentError unless `aliases` are of different outputs.

        TF: tensorflow_serving/servables/tensorflow/predict_util.cc (PreProcessPrediction)
        """
        seen: set[str] = set()
        for alias in aliases:
            if alias not in self.outputs:
                raise InvalidArgumentError(
                    f"output tensor alias not found in signature: {alias} Outputs expected to be "
                    f"in the set {{{','.join(self.outputs)}}}."
                )
            if alias in seen:
                raise InvalidArgumentError(f"duplicate output tensor alias: {alias}")
            seen.add(alias)


def _specs(infos: Mapping[str, pb.TensorInfo]) -> dict[str, TensorSpec]:
    return {
        alias: TensorSpec(
            info.name, dtypes.from_number(info.dtype)[0], shape_from_proto(info.tensor_shape)
        )
        for alias, info in sorted(infos.items())
    }


def signature_table(meta_graph_def: pb.MetaGraphDef) -> dict[str, Signature]:
    """Return the signatures of a meta graph by name, in alphabetical order."""
    return {
        name: Signature(name, signature_def)
        for name, signature_def in sorted(meta_graph_def.signature_def.items())
    }
