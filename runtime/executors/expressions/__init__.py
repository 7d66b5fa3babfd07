"""Neighbouring element-wise instructions of a step plan, which numexpr runs as one expression."""
