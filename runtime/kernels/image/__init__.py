"""Kernels that decode, encode, resize and transform images, and select boxes in them."""

MODULES: tuple[str, ...] = (
    "combined_non_max_suppression",
    "glimpses",
    "image_boxes",
    "image_color",
    "image_crops",
    "image_decode",
    "image_encode",
    "image_resize",
    "image_transform",
    "non_max_suppression",
)
