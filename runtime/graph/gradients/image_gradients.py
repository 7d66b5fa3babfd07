"""Gradient functions of image ops: resizing, cropping, warping, patches, colours.

TF: tensorflow/python/ops/image_grad.py, image_ops.py, array_grad.py
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.framework.attr_value import AttributeValue
from runtime.framework.dtypes import DataType
from runtime.graph.gradients.elementwise_gradients import GradientFunction, Gradients
from runtime.graph.gradients.gradient_nodes import GradientNodes, type_of
from runtime.graph.node import Endpoint, Node


def _attrs(node: Node, *names: str) -> dict[str, AttributeValue]:
    return {name: node.attr(name) for name in names}


# --- resizing, cropping, warping ------------------------------------------------------------------


def _resize_bilinear(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    attrs = _attrs(node, "align_corners", "half_pixel_centers")
    return [ops.ResizeBilinearGrad(grads[0], node.inputs[0], **attrs), None]


def _resize_bicubic(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    attrs = _attrs(node, "align_corners", "half_pixel_centers")
    return [ops.ResizeBicubicGrad(grads[0], node.inputs[0], **attrs), None]


def _resize_nearest(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    attrs = _attrs(node, "align_corners", "half_pixel_centers")
    sizes = ops.Slice(ops.Shape(node.inputs[0]), ops.indices([1]), ops.indices([2]))
    return [ops.ResizeNearestNeighborGrad(grads[0], sizes, **attrs), None]


def _crop_and_resize(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    image, boxes, places, _ = node.inputs
    attrs = _attrs(node, "method")
    dtype = type_of(image)
    of_image = ops.CropAndResizeGradImage(
        grads[0], boxes, places, ops.Shape(image), T=dtype, **attrs
    )
    return [
        of_image,
        ops.CropAndResizeGradBoxes(grads[0], image, boxes, places, **attrs),
        None,
        None,
    ]


def _scale_and_translate(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    image, _, scale, translation = node.inputs
    attrs = _attrs(node, "kernel_type", "antialias")
    dx = ops.ScaleAndTranslateGrad(grads[0], image, scale, translation, **attrs)
    return [dx, None, None, None]


def _projective_transform(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """ImageProjectiveTransformV2 and V3: warp the gradient by the inverse transforms.

    This is TensorFlow's gradient; it is the derivative only as far as the warp is invertible.
    """
    images, transforms = node.inputs[:2]
    flat = ops.Reshape(transforms, ops.indices([-1, 8]))
    ones = ops.OnesLike(ops.Slice(flat, ops.indices([0, 0]), ops.indices([-1, 1])))
    matrices = ops.Reshape(ops.ConcatV2([flat, ones], ops.indices(1)), ops.indices([-1, 3, 3]))
    inverse = ops.Reshape(ops.MatrixInverse(matrices), ops.indices([-1, 9]))
    last = ops.Slice(inverse, ops.indices([0, 8]), ops.indices([-1, 1]))
    inverse = ops.Slice(ops.RealDiv(inverse, last), ops.indices([0, 0]), ops.indices([-1, 8]))
    sizes = ops.Slice(ops.Shape(images), ops.indices([1]), ops.indices([2]))
    attrs = _attrs(node, "interpolation", "fill_mode")
    fill = [ops.constant(0, DataType.FLOAT)] if node.op.endswith("V3") else []
    dx = ops.add(node.op, grads[0], inverse, sizes, *fill, **attrs)
    return [dx, *([None] * (len(node.inputs) - 1))]


# --- patches --------------------------------------------------------------------------------------


def _patches(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """ExtractImagePatches and ExtractVolumePatches: sum the gradients of the copies of an element.

    The op is applied to the positions 1, 2, … of the elements of one image with one channel; the
    result says from where each element of a patch was taken, with 0 for the padding.
    """
    shape = ops.Shape(node.inputs[0])
    is_volume = node.op == "ExtractVolumePatches"
    names = (
        ("ksizes", "strides", "padding") if is_volume else ("ksizes", "strides", "rates", "padding")
    )
    place_rank = 3 if is_volume else 2
    one = ops.indices([1])
    batch = ops.Slice(shape, ops.indices([0]), one)
    sizes = ops.Slice(shape, one, ops.indices([place_rank]))
    channels = ops.Slice(shape, ops.indices([place_rank + 1]), one)
    count = ops.Prod(sizes, ops.indices([0]))
    positions = ops.Range(ops.indices(1), ops.AddV2(count, ops.indices(1)), ops.indices(1))
    positions = ops.Cast(positions, DstT=DataType.DOUBLE)
    image = ops.Reshape(positions, ops.ConcatV2([one, sizes, one], ops.indices(0)))
    taken = ops.add(node.op, image, **_attrs(node, *names))
    origins = ops.Sub(ops.Cast(taken, DstT=DataType.INT32), ops.indices(1))
    flat = ops.ConcatV2([batch, ops.indices([-1]), channels], ops.indices(0))
    by_place = ops.Transpose(ops.Reshape(grads[0], flat), ops.indices([1, 0, 2]))
    total = ops.UnsortedSegmentSum(by_place, ops.Reshape(origins, ops.indices([-1])), count)
    return [ops.Reshape(ops.Transpose(total, ops.indices([1, 0, 2])), shape)]


# --- colours --------------------------------------------------------------------------------------


def _rgb_to_hsv(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """RGBToHSV: return TensorFlow's derivatives of hue, saturation and value.

    They are piecewise: by which channel is largest and which smallest. Of equal channels, red is
    larger than green and green larger than blue. As in TensorFlow, saturation and hue have no
    derivative by a channel that is 0, and no derivative of hue if the largest channel is 0.
    """
    x = node.inputs[0]
    red, green, blue = channels = ops.Unpack(x, num=3, axis=-1)
    by_hue, by_saturation, by_value = ops.Unpack(grads[0], num=3, axis=-1)

    def mask(condition: Endpoint) -> Endpoint:
        output: Endpoint = ops.Cast(condition, DstT=type_of(x))
        return output

    def both(a: Endpoint, b: Endpoint) -> Endpoint:
        return mask(ops.LogicalAnd(a, b))

    largest = [
        both(ops.GreaterEqual(red, blue), ops.GreaterEqual(red, green)),
        both(ops.Greater(green, red), ops.GreaterEqual(green, blue)),
        both(ops.Greater(blue, red), ops.Greater(blue, green)),
    ]
    smallest = [
        both(ops.Less(red, blue), ops.Less(red, green)),
        both(ops.LessEqual(green, red), ops.Less(green, blue)),
        both(ops.LessEqual(blue, red), ops.LessEqual(blue, green)),
    ]
    positive = [mask(ops.Greater(each, ops.like(0, x))) for each in channels]
    hue = _hue_slopes(ops, channels, largest, smallest, positive)
    low, high = (
        ops.AddN([ops.Mul(*pair) for pair in zip(masks, channels, strict=True)])
        for masks in (smallest, largest)
    )
    by_largest = ops.DivNoNan(low, ops.Square(high))
    by_smallest = ops.DivNoNan(ops.like(-1, x), high)
    found = []
    for index in range(3):
        slope = ops.AddV2(
            ops.Mul(largest[index], by_largest), ops.Mul(smallest[index], by_smallest)
        )
        found.append(
            ops.AddN(
                [
                    ops.Mul(by_hue, hue[index]),
                    ops.Mul(by_saturation, ops.Mul(positive[index], slope)),
                    ops.Mul(by_value, largest[index]),
                ]
            )
        )
    return [ops.Pack(found, axis=-1)]


def _hue_slopes(
    ops: GradientNodes,
    channels: Sequence[Endpoint],
    largest: Sequence[Endpoint],
    smallest: Sequence[Endpoint],
    positive: Sequence[Endpoint],
) -> list[Endpoint]:
    """Return the derivatives of the hue (0 to 1) by red, green and blue.

    If the largest channel is a, followed in the cycle red, green, blue by b and c, the hue is a
    constant plus (b − c) / (a − smallest) / 6.
    """
    parts: list[list[Endpoint]] = [[], [], []]
    sixth = ops.like(1 / 6, channels[0])
    for first in range(3):
        second, third = (first + 1) % 3, (first + 2) % 3
        a, b, c = (channels[index] for index in (first, second, third))
        share = ops.Mul(ops.Mul(sixth, largest[first]), positive[first])
        range_ = ops.Sub(a, ops.Minimum(b, c))
        if_b, if_c = smallest[second], smallest[third]
        from_b, from_c = ops.Sub(a, b), ops.Sub(a, c)
        one = ops.OnesLike(a)
        slopes = (
            ops.DivNoNan(ops.Sub(c, b), ops.Square(range_)),
            ops.AddV2(
                ops.Mul(if_b, ops.DivNoNan(from_c, ops.Square(from_b))),
                ops.Mul(if_c, ops.DivNoNan(one, from_c)),
            ),
            ops.Neg(
                ops.AddV2(
                    ops.Mul(if_c, ops.DivNoNan(from_b, ops.Square(from_c))),
                    ops.Mul(if_b, ops.DivNoNan(one, from_b)),
                )
            ),
        )
        for index, slope in zip((first, second, third), slopes, strict=True):
            parts[index].append(ops.Mul(share, slope))
    return [ops.AddN(each) for each in parts]


IMAGE_GRADIENTS: dict[str, GradientFunction] = {
    "ResizeBilinear": _resize_bilinear,
    "ResizeBicubic": _resize_bicubic,
    "ResizeNearestNeighbor": _resize_nearest,
    "CropAndResize": _crop_and_resize,
    "ScaleAndTranslate": _scale_and_translate,
    "ImageProjectiveTransformV2": _projective_transform,
    "ImageProjectiveTransformV3": _projective_transform,
    "ExtractImagePatches": _patches,
    "ExtractVolumePatches": _patches,
    "RGBToHSV": _rgb_to_hsv,
}
