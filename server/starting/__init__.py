"""What the server's program does first, before it imports anything else of the server."""
