"""Check the signatures of classify and regress, and make results from their output tensors.

TF: tensorflow_serving/servables/tensorflow/{classifier,regressor}.cc
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from runtime.api import dtypes, shape_text
from runtime.errors import InvalidArgumentError
from server.models.model_version import ModelVersion
from server.models.signature import CLASSIFY_METHOD, REGRESS_METHOD, Signature

INPUTS = "inputs"  # alias of the only input: serialized examples
CLASSES, SCORES = "classes", "scores"
OUTPUTS = "outputs"


class Classifications(NamedTuple):
    """The result of classify: `labels` (bytes) and `scores` (float32).

    Both have the shape `[number of examples, classes]`.
    """

    labels: np.ndarray
    scores: np.ndarray


def find_example_signature(version: ModelVersion, name: str) -> Signature:
    """Return the signature `name`; raise InvalidArgumentError if there is none.

    The message is TensorFlow Serving's for classify and regress.
    """
    signature = version.signatures.get(name)
    if signature is None:
        raise InvalidArgumentError(f"No signature was found with the name: {name:.80}")
    return signature


def classify_outputs(signature: Signature) -> tuple[str, ...]:
    """Return the aliases of the outputs that a classification needs.

    Raises InvalidArgumentError unless the signature has the one input `inputs` and the output
    `classes`, `scores` or both.
    """
    signature.check_method("classification", CLASSIFY_METHOD)
    _check_one_input(signature)
    if len(signature.outputs) not in (1, 2):
        raise InvalidArgumentError(
            f"Expected one or two output Tensors, found {len(signature.outputs)}"
        )
    if INPUTS not in signature.inputs:
        raise _not_found("classification inputs", signature)
    present = tuple(alias for alias in (CLASSES, SCORES) if alias in signature.outputs)
    if not present:
        raise InvalidArgumentError(
            "Expected classification signature outputs to contain at least one of "
            f'"{CLASSES}" or "{SCORES}". Signature was: {_described(signature)}'
        )
    return present


def regress_outputs(signature: Signature) -> tuple[str, ...]:
    """Return the alias of the output that a regression needs.

    Raises InvalidArgumentError unless the signature has the one input `inputs` and the one output
    `outputs`.
    """
    signature.check_method("regression", REGRESS_METHOD)
    _check_one_input(signature)
    if len(signature.outputs) != 1:
        raise InvalidArgumentError("Expected one output Tensor.")
    if INPUTS not in signature.inputs:
        raise _not_found("regression inputs", signature)
    if OUTPUTS not in signature.outputs:
        raise _not_found("regression outputs", signature)
    return (OUTPUTS,)


def classifications(outputs: dict[str, np.ndarray], num_examples: int) -> Classifications:
    """Return the labels and scores of each example, from `classes` and `scores` `[batch, classes]`.

    If `outputs` has no `classes`, the labels are empty; if it has no `scores`, the scores are 0.
    Raises InvalidArgumentError if a tensor has another shape or type.
    """
    classes, scores = outputs.get(CLASSES), outputs.get(SCORES)
    for alias, array, wanted in (
        (CLASSES, classes, np.dtype(object)),
        (SCORES, scores, np.dtype(np.float32)),
    ):
        if array is not None:
            _check_matrix(alias, array, wanted, num_examples)
    if classes is not None and scores is not None and classes.shape[1] != scores.shape[1]:
        raise InvalidArgumentError(
            "Tensors class and score should match in dim_size(1). Got "
            f"{classes.shape[1]} vs. {scores.shape[1]}"
        )
    present = classes if classes is not None else scores
    shape = (num_examples, 0) if present is None else present.shape
    return Classifications(
        np.full(shape, b"", object) if classes is None else classes,
        np.zeros(shape, np.float32) if scores is None else scores,
    )


def regressions(output: np.ndarray, num_examples: int) -> np.ndarray:
    """Return one float32 value for each example, from an output `[batch]` or `[batch, 1]`.

    Raises InvalidArgumentError if the output has another shape or type.
    """
    if not (output.ndim == 1 or (output.ndim == 2 and output.shape[1] == 1)):
        raise InvalidArgumentError(
            "Expected output Tensor shape to be either [batch_size] or [batch_size, 1] but got "
            f"{shape_text(output.shape)}"
        )
    if output.shape[0] != num_examples:
        raise InvalidArgumentError(
            f"Input batch size did not match output batch size: {num_examples} vs. "
            f"{output.shape[0]}"
        )
    if output.dtype != np.float32:
        raise InvalidArgumentError(
            f"Expected output Tensor of DT_FLOAT.  Got: {_type_text(output.dtype)}"
        )
    return output.reshape(num_examples)


def _check_one_input(signature: Signature) -> None:
    if len(signature.inputs) != 1:
        raise InvalidArgumentError("Expected one input Tensor.")


def _check_matrix(alias: str, array: np.ndarray, wanted: np.dtype, num_examples: int) -> None:
    if array.ndim != 2:
        raise InvalidArgumentError(
            f"Expected Tensor shape: [batch_size num_classes] but got {shape_text(array.shape)}"
        )
    if array.dtype != wanted:
        raise InvalidArgumentError(
            f"Expected {alias} Tensor of {_type_text(wanted)}. Got: {_type_text(array.dtype)}"
        )
    if array.shape[0] != num_examples:
        raise InvalidArgumentError(
            f"Expected {alias} output batch size of {num_examples}. Got: {array.shape[0]}"
        )


def _not_found(what: str, signature: Signature) -> InvalidArgumentError:
    return InvalidArgumentError(f"No {what} found in SignatureDef: {_described(signature)}")


def _described(signature: Signature) -> str:
    return (
        f"{signature.name} with inputs {{{','.join(signature.inputs)}}} "
        f"and outputs {{{','.join(signature.outputs)}}}"
    )


def _type_text(dtype: np.dtype) -> str:
    return f"DT_{dtypes.from_numpy(dtype).name}"
