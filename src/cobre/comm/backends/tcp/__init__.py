"""The tcp backend: a star topology around rank 0, the coordinator; ranks of one node use its shared memory.

Read in this order: `wire` (frames in `protocol`, their contents in `messages`), `rendezvous` (how the ranks find and
authenticate each other), `transport` with its two ends `coordinator` and `worker` (how payloads move), `liveness` (how
failures are detected and reported), `collectives` (without and with shared memory inside a node, which `node_group`
provides), `communicator`.
"""
