"""Convert request bodies to arrays and arrays to response bodies, as JSON or as protobuf."""
