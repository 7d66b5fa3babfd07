"""The rules for which files a step may access, and the file formats of records and checkpoints."""
