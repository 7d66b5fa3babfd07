"""Export models with TensorFlow, Keras or JAX: one program a file."""
