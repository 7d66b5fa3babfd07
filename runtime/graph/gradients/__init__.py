"""Gradient functions of ops, and the gradients of whole functions, which are built with them."""
