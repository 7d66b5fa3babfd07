"""The documentation site: its pages, what is generated for it, and what is checked."""
