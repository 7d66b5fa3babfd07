"""The process that starts several server processes, and the start of each of them."""
