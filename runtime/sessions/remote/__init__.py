"""Sessions on a server: TensorFlow's master protocol (grpc://) and Runstep's REST API (http://)."""
