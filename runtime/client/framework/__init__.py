"""Graphs under construction: their operations, tensors, shapes and scopes."""
