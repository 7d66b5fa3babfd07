"""Tokenizers of wordpieces: with a lookup table, and with a model of their own."""
