"""Abstract interpretation: runs the functions of a loop on forms instead of tensors.

Values of the iteration that a matrix multiplies have rank 2 `[batch, width]`; emission checks it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from runtime.clusters.declared_types import has_declared_types, is_usable_constant
from runtime.clusters.loops.forms import Form, Forms, Kind, UnrecognisedError, array_of, number_of
from runtime.clusters.resource_order import has_effect
from runtime.framework.dtypes import DataType
from runtime.graph.function_library import FunctionBody, FunctionLibrary
from runtime.graph.node import Node
from runtime.graph.topology import topological_order

_MAX_NODES = 1000  # of a function; a larger one is no cell
_MAX_CALLS = 8  # nested function calls
_MAX_CONSTANT = 1 << 22  # elements of a constant of the function
_CALLS = frozenset(("PartitionedCall", "StatefulPartitionedCall"))
_COUNTERS = frozenset((DataType.INT32, DataType.INT64))

_Outputs = list[Form]
_Rule = Callable[[Forms, Node, Sequence[Form]], "Form | _Outputs"]


def interpret(
    body: FunctionBody,
    arguments: Sequence[Form],
    forms: Forms,
    library: FunctionLibrary,
    depth: int = 0,
) -> list[Form]:
    """Return the forms of a function's results; raise UnrecognisedError if one has none."""
    if len(body.nodes) > _MAX_NODES or depth > _MAX_CALLS:
        raise UnrecognisedError(f"function {body.name} is too large")
    values: dict[Node, _Outputs] = {
        node: [form] for node, form in zip(body.arguments, arguments, strict=True)
    }
    needed = _needed(body)
    _require_declared_types(body)
    _require_no_effects(body, needed)
    for node in topological_order(body.nodes):
        if node not in needed or node in values:
            continue
        operands = [values[source][index] for source, index in node.inputs]
        if node.op in _CALLS:
            called = library.body(node.attr("f"))
            values[node] = interpret(called, operands, forms, library, depth + 1)
            continue
        rule = _RULES.get(node.op)
        if rule is None:
            raise UnrecognisedError(f"{node.name} is a {node.op}")
        made = rule(forms, node, operands)
        values[node] = made if isinstance(made, list) else [made]
    return [values[node][index] for node, index in body.results]


def variable(forms: Forms, index: int, dtype: DataType) -> Form:
    """Return the form of a loop variable at the start of an iteration."""
    if dtype in _COUNTERS:
        return forms.make(Kind.COUNTER, detail=(index, 0))
    return forms.make(Kind.VARIABLE, detail=index)


def _needed(body: FunctionBody) -> set[Node]:
    """Return the nodes that the results depend on by data."""
    needed: set[Node] = set()
    pending = [node for node, _ in body.results]
    while pending:
        node = pending.pop()
        if node not in needed:
            needed.add(node)
            pending += [source for source, _ in node.inputs]
    return needed


def _require_declared_types(body: FunctionBody) -> None:
    """Raise UnrecognisedError if kernels would raise an error for a node, needed or not."""
    for node in body.nodes:
        is_usable = node.op != "Const" or is_usable_constant(node)
        if not is_usable or not has_declared_types(node):
            raise UnrecognisedError(f"{node.name} has other types than it declares")


def _require_no_effects(body: FunctionBody, needed: set[Node]) -> None:
    """Raise UnrecognisedError if a run of the function could be seen other than by its results."""
    reached: set[Node] = set()
    pending = [*needed, *body.control_results]
    while pending:
        node = pending.pop()
        if node in reached:
            continue
        reached.add(node)
        pending += [*(source for source, _ in node.inputs), *node.control_inputs]
        is_interpreted = node in needed and node.op in _CALLS
        if has_effect(node) and not is_interpreted and node.op != "_Arg":
            raise UnrecognisedError(f"{node.name} ({node.op}) has effects")


# Rules: forms of the inputs → form of the output, or of all outputs


def _same(forms: Forms, node: Node, operands: Sequence[Form]) -> Form:
    return operands[0]


def _constant(forms: Forms, node: Node, operands: Sequence[Form]) -> Form:
    array: np.ndarray = node.attr("value")
    if array.dtype.kind not in "fiub" or array.size > _MAX_CONSTANT:
        raise UnrecognisedError(f"{node.name} is not numeric")
    return forms.constant(array)


def _add(forms: Forms, node: Node, operands: Sequence[Form]) -> Form:
    left, right = operands
    if node.output_types[0] not in _COUNTERS:
        return forms.add(left, right)
    counter, step = (left, right) if left.kind is Kind.COUNTER else (right, left)
    if counter.kind is not Kind.COUNTER:
        raise UnrecognisedError(f"{node.name} adds integers that are no counters")
    assert isinstance(counter.detail, tuple)
    index, number = counter.detail
    return forms.make(Kind.COUNTER, detail=(index, number + int(number_of(step))))


def _bias_add(forms: Forms, node: Node, operands: Sequence[Form]) -> Form:
    value, bias = operands
    return forms.add(value, forms.derived("vector", bias) if bias.is_known else bias)


def _subtract(forms: Forms, node: Node, operands: Sequence[Form]) -> Form:
    left, right = operands
    if right.is_known or number_of(left) != 1:
        raise UnrecognisedError(f"{node.name} subtracts from something other than 1")
    return forms.make(Kind.COMPLEMENT, right)


def _multiply(forms: Forms, node: Node, operands: Sequence[Form]) -> Form:
    return forms.multiply(*operands)


def _divide(forms: Forms, node: Node, operands: Sequence[Form]) -> Form:
    return forms.divide(operands[0], number_of(operands[1]))


def _minimum(forms: Forms, node: Node, operands: Sequence[Form]) -> Form:
    limit, form = _known_first(operands)
    return forms.make(Kind.CAPPED, form, detail=number_of(limit))


def _maximum(forms: Forms, node: Node, operands: Sequence[Form]) -> Form:
    limit, form = _known_first(operands)
    if number_of(limit) != 0:
        raise UnrecognisedError(f"{node.name} is a maximum with something other than 0")
    if form.kind is not Kind.CAPPED:
        return forms.activated(form, "Relu")
    assert isinstance(form.detail, float)
    return forms.clip(form.operands[0], form.detail)


def _known_first(operands: Sequence[Form]) -> tuple[Form, Form]:
    left, right = operands
    return (left, right) if left.is_known else (right, left)


def _clip_by_value(forms: Forms, node: Node, operands: Sequence[Form]) -> Form:
    form, low, high = operands
    if number_of(low) != 0:
        raise UnrecognisedError(f"{node.name} clips at something other than 0")
    return forms.clip(form, number_of(high))


def _relu6(forms: Forms, node: Node, operands: Sequence[Form]) -> Form:
    return forms.clip(operands[0], 6.0)


def _activation(name: str, alpha: float = 0.0) -> _Rule:
    def rule(forms: Forms, node: Node, operands: Sequence[Form]) -> Form:
        return forms.activated(operands[0], name, alpha)

    return rule


def _leaky_relu(forms: Forms, node: Node, operands: Sequence[Form]) -> Form:
    return forms.activated(operands[0], "LeakyRelu", float(node.attr("alpha")))


def _ones_like(forms: Forms, node: Node, operands: Sequence[Form]) -> Form:
    return forms.make(Kind.ONES, operands[0])


def _matrix_product(forms: Forms, node: Node, operands: Sequence[Form]) -> Form:
    left, right = operands
    if node.attr("transpose_a") or left.is_known or not right.is_known:
        raise UnrecognisedError(f"{node.name} is not a product of a value and a weight")
    if node.attr("transpose_b"):
        right = forms.derived("transpose", right)
    if left.kind is not Kind.JOINED:
        return forms.linear([left], [right])
    parts = left.operands
    rows = [forms.derived("rows", right, parameters=(parts, index)) for index in range(len(parts))]
    products = [forms.linear([part], [each]) for part, each in zip(parts, rows, strict=True)]
    total = products[0]
    for each in products[1:]:
        total = forms.add(total, each)
    return total


def _join(forms: Forms, node: Node, operands: Sequence[Form]) -> Form:
    *parts, axis = operands
    if number_of(axis) not in (1, -1) or any(each.is_known for each in parts):
        raise UnrecognisedError(f"{node.name} joins other than columns of values")
    flat = [each for part in parts for each in _joined_parts(part)]
    return forms.make(Kind.JOINED, *flat)


def _joined_parts(form: Form) -> tuple[Form, ...]:
    return form.operands if form.kind is Kind.JOINED else (form,)


def _split(forms: Forms, node: Node, operands: Sequence[Form]) -> _Outputs:
    axis, form = operands
    count = int(node.attr("num_split"))
    return [
        _cut(forms, node, form, "part", int(number_of(axis)), index, count)
        for index in range(count)
    ]


def _split_by_sizes(forms: Forms, node: Node, operands: Sequence[Form]) -> _Outputs:
    form, sizes_form, axis = operands
    sizes = [int(each) for each in array_of(sizes_form).reshape(-1)]
    if sizes.count(-1) > 1 or min(sizes, default=0) < -1:
        raise UnrecognisedError(f"{node.name} has sizes {sizes}")
    return [
        _cut(forms, node, form, "sized_part", int(number_of(axis)), index, *sizes)
        for index in range(len(sizes))
    ]


def _cut(
    forms: Forms, node: Node, form: Form, function: str, axis: int, *parameters: int | None
) -> Form:
    if form.is_known:
        return forms.derived(function, form, parameters=(axis, *parameters))
    if axis not in (1, -1):
        raise UnrecognisedError(f"{node.name} cuts the batch")
    return forms.cut(form, function, (-1, *parameters))


def _strided_slice(forms: Forms, node: Node, operands: Sequence[Form]) -> Form:
    form = operands[0]
    if node.attr("ellipsis_mask") or node.attr("new_axis_mask"):
        raise UnrecognisedError(f"{node.name} has new axes or an ellipsis")
    begin, end, strides = ([int(each) for each in array_of(each)] for each in operands[1:])
    masks = [int(node.attr(f"{name}_mask")) for name in ("begin", "end", "shrink_axis")]
    steps: list[tuple[str | int | None, ...]] = []
    for axis, (start, stop, step) in enumerate(zip(begin, end, strides, strict=True)):
        has_begin, has_end, is_index = (not mask >> axis & 1 for mask in masks)
        if not is_index:
            steps.append(("at", start))
        else:
            steps.append(("range", start if has_begin else None, stop if has_end else None, step))
    if form.is_known:
        return forms.derived("indexed", form, parameters=tuple(steps))
    whole, *columns = steps
    if whole not in (("range", None, None, 1), ("range", 0, None, 1)) or len(columns) != 1:
        raise UnrecognisedError(f"{node.name} cuts the batch")
    kind, *bounds = columns[0]
    if kind != "range" or bounds[2] != 1:
        raise UnrecognisedError(f"{node.name} takes single columns")
    return forms.cut(form, "range", (-1, bounds[0] or 0, bounds[1]))


def _unpack(forms: Forms, node: Node, operands: Sequence[Form]) -> _Outputs:
    _require_known(node, operands[0])
    axis, count = int(node.attr("axis")), int(node.attr("num"))
    return [
        forms.derived("unpacked", operands[0], parameters=(axis, index, count))
        for index in range(count)
    ]


def _squeeze(forms: Forms, node: Node, operands: Sequence[Form]) -> Form:
    _require_known(node, operands[0])
    axes = tuple(int(each) for each in node.attr("squeeze_dims"))
    return forms.derived("squeeze", operands[0], parameters=axes)


def _require_known(node: Node, form: Form) -> None:
    if not form.is_known:
        raise UnrecognisedError(f"{node.name} ({node.op}) of a value of the iteration")


def _item(forms: Forms, node: Node, operands: Sequence[Form]) -> Form:
    elements, counter, _ = operands
    if elements.kind is not Kind.INVARIANT or counter.kind is not Kind.COUNTER:
        raise UnrecognisedError(f"{node.name} is not an element of the input at a counter")
    return forms.make(Kind.ITEM, elements, counter)


def _with_item(forms: Forms, node: Node, operands: Sequence[Form]) -> Form:
    return forms.make(Kind.LIST, *operands)


def _less(forms: Forms, node: Node, operands: Sequence[Form]) -> Form:
    return forms.make(Kind.LESS, *operands)


def _greater(forms: Forms, node: Node, operands: Sequence[Form]) -> Form:
    return forms.make(Kind.LESS, *reversed(operands))


def _all(forms: Forms, node: Node, operands: Sequence[Form]) -> Form:
    return forms.make(Kind.ALL, *operands)


_RULES: Mapping[str, _Rule] = {
    "Add": _add,
    "AddV2": _add,
    "BiasAdd": _bias_add,
    "ClipByValue": _clip_by_value,
    "ConcatV2": _join,
    "Const": _constant,
    "Elu": _activation("Elu", 1.0),
    "Greater": _greater,
    "Identity": _same,
    "LeakyRelu": _leaky_relu,
    "Less": _less,
    "LogicalAnd": _all,
    "MatMul": _matrix_product,
    "Maximum": _maximum,
    "Minimum": _minimum,
    "Mul": _multiply,
    "OnesLike": _ones_like,
    "PreventGradient": _same,
    "RealDiv": _divide,
    "Relu": _activation("Relu"),
    "Relu6": _relu6,
    "Sigmoid": _activation("Sigmoid"),
    "Softplus": _activation("Softplus"),
    "Softsign": _activation("Softsign"),
    "Split": _split,
    "SplitV": _split_by_sizes,
    "Squeeze": _squeeze,
    "StopGradient": _same,
    "StridedSlice": _strided_slice,
    "Sub": _subtract,
    "Tanh": _activation("Tanh"),
    "TensorListGetItem": _item,
    "TensorListSetItem": _with_item,
    "Unpack": _unpack,
}
