"""The tcp backend: a star topology around rank 0, the coordinator; ranks of one node use its shared memory.

Read in this order, in which each module imports only earlier ones: `wire` (frames in `protocol`, their contents in
`messages`), `rendezvous` (how the ranks find and authenticate each other), `liveness` (how failures are detected and
reported), `transport` (how payloads move: `channel`, `streams` and `waiting`, the interface `star` with its two ends
`coordinator` and `worker`, and the `ring`), `node_group` (which ranks share memory), `collectives` (without and with
shared memory inside a node), `communicator`.

A collective goes down through these layers: the native guard checks and records the call; `StarCollectives` or
`HierarchicalCollectives` chooses how data moves; `StarTransport.gather_inline` (with the call, one round trip) or
`gather_stream`, or `Ring.gather_blocks`, moves it; a `Channel` sends and receives bytes.
"""
