"""Types, tensors, attributes, kernels and resources: what a kernel may use."""
