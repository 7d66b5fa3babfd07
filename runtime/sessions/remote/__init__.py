"""Sessions on a server, over TensorFlow's master protocol (grpc://) or Runstep's REST (http://)."""
