"""Checks of a node against the signature of its op; messages are TensorFlow's.

The nodes of graphs and of functions must pass the same checks.

TF: tensorflow/core/framework/node_def_util.cc (ValidateNodeDef),
tensorflow/core/common_runtime/graph_constructor.cc
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.attr_value import AttrPlaceholder, NameAttrList
from runtime.framework.dtypes import DataType
from runtime.graph.node import AttrRule, Node

# name of a field of AttrValue or of AttrValue.ListValue → kind of the attribute in an OpDef
_KIND_OF_FIELD = {
    "s": "string",
    "i": "int",
    "f": "float",
    "b": "bool",
    "type": "type",
    "shape": "shape",
    "tensor": "tensor",
    "func": "func",
}
# kind of an attribute in an OpDef → classes of its Python value, see `runtime.framework.attr_value`
_CLASSES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "int": (int,),
    "float": (float,),
    "bool": (bool,),
    "type": (DataType,),
    "shape": (tuple, type(None)),
    "tensor": (np.ndarray,),
    "func": (NameAttrList,),
}


def check_attrs(node: Node) -> None:
    """Raise InvalidArgumentError unless every attribute is of the kind that the op requires.

    Raises NotFoundError if one is missing that has no default. In a function the values of
    placeholders must have been substituted before.
    """
    given = node.node_def.attr
    for rule in node.info.attr_rules:
        value = given.get(rule.name)
        if value is not None:
            field = value.WhichOneof("value")
            if field == "placeholder" and not isinstance(node.attr(rule.name), AttrPlaceholder):
                _check_substituted(node, rule)
            elif field != rule.field or field == "list":
                _check_kind(rule, field, value)
        if rule.allowed is not None:
            _check_allowed(node, rule)
        elif value is None and not rule.has_default:
            node.attr(rule.name)  # raises NotFoundError with TensorFlow's message
        if rule.minimum is not None and value is not None:
            _check_minimum(node, rule, rule.minimum)


def _check_kind(rule: AttrRule, field: str | None, value: pb.AttrValue) -> None:
    """Raise InvalidArgumentError if `value` is not of the kind that `rule` requires.

    If the rule requires a list, an AttrValue in which no field is set is an empty list.

    TF: tensorflow/core/framework/attr_value_util.cc (AttrValueHasType)
    """
    is_list = rule.field == "list"
    if field is None:
        if is_list:
            return
        raise InvalidArgumentError(
            f"AttrValue missing value with expected type '{rule.kind}'\n\t for attr '{rule.name}'"
        )
    kinds = [_KIND_OF_FIELD.get(field, field)]
    if field == "list":
        kinds = [f"list({_KIND_OF_FIELD[each.name]})" for each, _ in value.list.ListFields()]
        if not kinds and is_list:
            return
    if kinds != [rule.kind]:
        raise InvalidArgumentError(
            f"AttrValue had value with type '{' and '.join(kinds) or 'list()'}' when "
            f"'{rule.kind}' expected\n\t for attr '{rule.name}'"
        )


def _check_substituted(node: Node, rule: AttrRule) -> None:
    """Raise InvalidArgumentError unless what the caller of the function gives is of the kind."""
    value = node.attr(rule.name)
    kind = rule.kind.removeprefix("list(").removesuffix(")")
    values = value if rule.field == "list" else (value,)
    is_tuple = rule.field != "list" or isinstance(value, tuple)
    if not is_tuple or any(type(each) not in _CLASSES[kind] for each in values):
        raise InvalidArgumentError(
            f"AttrValue had value {value!r:.80} when '{rule.kind}' expected\n\t for attr "
            f"'{rule.name}'"
        )


def _check_minimum(node: Node, rule: AttrRule, minimum: int) -> None:
    value = node.attr(rule.name)
    what, size = ("Length", len(value)) if isinstance(value, tuple) else ("Value", value)
    if size < minimum:
        raise InvalidArgumentError(
            f"{what} for attr '{rule.name}' of {size} must be at least minimum {minimum}\n\t; "
            f"NodeDef: {{{{node {node.name}}}}}; Op<name={node.op}>"
        )


def _check_allowed(node: Node, rule: AttrRule) -> None:
    value = node.attr(rule.name)
    allowed = rule.allowed or ()
    for each in value if isinstance(value, tuple) else (value,):
        if each not in allowed:
            shown = each.tf_name if isinstance(each, DataType) else f'"{each}"'
            choices = ", ".join(
                choice.tf_name if isinstance(choice, DataType) else f'"{choice}"'
                for choice in allowed
            )
            raise InvalidArgumentError(
                f"Value for attr '{rule.name}' of {shown} is not in the list of allowed values: "
                f"{choices}\n\t; NodeDef: {{{{node {node.name}}}}}; Op<name={node.op}>"
            )


# TensorFlow's Python code adds outputs to these nodes when it builds gradients. If the client sent
# the nodes before, the session has them without these outputs.
_WITH_INTERMEDIATES = frozenset(("If", "StatelessIf", "While", "StatelessWhile"))
_INTERMEDIATES_HINT = " Try using tf.compat.v1.experimental.output_all_intermediates(True)."


def check_edge(node: Node, source: Node, index: int, expected: Sequence[DataType]) -> None:
    """Raise InvalidArgumentError unless the node may take that output as its next input."""
    if index >= len(source.output_types):
        raise InvalidArgumentError(
            f"Node '{node.name}': Connecting to invalid output {index} of source node "
            f"{source.name} which has {len(source.output_types)} outputs."
            + (_INTERMEDIATES_HINT if source.op in _WITH_INTERMEDIATES else "")
        )
    slot = len(node.inputs)
    if slot >= len(expected):
        raise InvalidArgumentError(
            f"Input {slot} of node {node.name} does not exist. "
            f"Node only has {len(expected)} inputs."
        )
    given, wanted = source.output_types[index], expected[slot]
    is_ref = node.input_is_ref[slot]
    if given != wanted or (is_ref and not source.output_is_ref[index]):
        shown_given = given.tf_name + ("_ref" if source.output_is_ref[index] else "")
        raise InvalidArgumentError(
            f"Input {slot} of node {node.name} was passed {shown_given} from "
            f"{source.name}:{index} incompatible with expected "
            f"{wanted.tf_name}{'_ref' if is_ref else ''}."
        )


def check_complete(node: Node) -> None:
    """Raise InvalidArgumentError if some inputs of `node` were never connected.

    Passes and executors rely on it: every node of a step's graph and of a function has all inputs.
    """
    if node.missing_inputs:
        raise InvalidArgumentError(
            f"Incomplete graph, missing {node.missing_inputs} inputs for {node.name}", node.name
        )
