"""Clusters of expensive operations, compiled outside Python."""
