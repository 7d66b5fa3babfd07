"""Kernels of quantized tensors, and kernels that round floats as quantization does."""

MODULES: tuple[str, ...] = (
    "fake_quant",
    "quantization",
    "quantize_and_dequantize",
    "quantized_concat",
    "quantized_math",
    "quantized_pooling",
    "requantization",
    "uniform_convolution",
    "uniform_products",
    "uniform_quantization",
)
