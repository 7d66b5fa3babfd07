"""What the processes of one server on a host know of each other."""
