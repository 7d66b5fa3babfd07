"""Run the steps of several requests on one served signature as one step."""
