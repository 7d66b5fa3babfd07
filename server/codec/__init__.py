"""Tensors as JSON, bytes and protobuf."""
