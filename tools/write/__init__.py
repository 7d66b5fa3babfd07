"""Write the generated pages, tables and files: one program a file."""
