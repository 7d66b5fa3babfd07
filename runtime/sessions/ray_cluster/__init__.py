"""Sessions on the nodes of a Ray cluster (ray://). Only this folder imports Ray."""
