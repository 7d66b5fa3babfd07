"""The application of Ray Serve: replicas of models, fronts, and how it is deployed."""
