"""Sessions on the nodes of a Ray cluster, as front ends know them: a directory and its hosts."""
