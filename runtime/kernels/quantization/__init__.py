"""Kernels of quantized tensors, and of rounding floats as quantization does."""

MODULES: tuple[str, ...] = (
    "fake_quant",
    "quantization",
    "quantize_and_dequantize",
    "quantized_math",
    "quantized_pooling",
    "requantization",
)
