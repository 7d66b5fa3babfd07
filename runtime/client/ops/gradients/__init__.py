"""Differentiation of graphs: `gradients`, and the gradient functions that only it has."""
