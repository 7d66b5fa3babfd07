"""Programs of other environments, which call a server with the real client libraries."""
