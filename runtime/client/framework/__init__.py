"""Graphs under construction: operations, tensors, shapes, scopes, and their messages."""
