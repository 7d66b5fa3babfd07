"""Types, tensors, attributes, kernels and resources: everything that a kernel may use."""
