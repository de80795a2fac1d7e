"""The tcp backend: a star around rank 0, for ranks that share no memory.

Read in this order: `protocol` (the wire format), `rendezvous` (how the ranks find and trust each other), `coordinator`
and `worker` (the collectives of each side), `watch` (how a failure is detected and reported), `communicator`.
"""
