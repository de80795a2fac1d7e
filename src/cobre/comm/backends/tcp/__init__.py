"""The tcp backend: a star around rank 0, for ranks that share no memory.

Read in this order: `protocol` (what is on the wire), `rendezvous` and `joining` (how the ranks meet), `coordinator` and
`worker` (the collectives of each side), `watch` (how a failure is noticed and told), `communicator`.
"""
