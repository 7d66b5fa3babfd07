"""Bodies to arrays and arrays to bodies: JSON and protobuf, by contract."""
