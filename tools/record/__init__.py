"""Record what TensorFlow answers, for the tests: one program a file."""
