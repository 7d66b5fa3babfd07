"""Groups of expensive operations that are compiled outside Python; not implemented yet."""
