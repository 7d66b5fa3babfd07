"""Files: which of them a step may access, and the formats of records and checkpoints."""
