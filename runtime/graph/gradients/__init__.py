"""Gradient functions of ops, and the gradients of function bodies made of them."""
