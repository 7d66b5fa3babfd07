"""Large JSON, read and written in slices so that no thread holds the interpreter for long."""
