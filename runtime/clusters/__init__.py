"""Clusters: groups of expensive nodes of a step's graph, which an engine computes as one.

The way of a cluster: `partition` chooses nodes, `emission` writes them as operations of a model,
`patterns` recognises larger operations among these, `loops` does so for whole loops, `model_proto`
serialises the model, `backend` compiles and runs it, and `cluster` decides at each run whether the
compiled form holds. The numpy kernels are the reference; they run whatever an engine doesn't take.
"""
