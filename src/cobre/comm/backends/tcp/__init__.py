"""The tcp backend: a star topology around rank 0, the coordinator; ranks of one node use its shared memory.

Read in this order: `protocol` (the wire format, with `handshake_messages` and `control_messages`), `rendezvous` (how
the ranks find and authenticate each other), `transport` with its two ends `coordinator` and `worker` (how payloads
move), `liveness_monitor` (how failures are detected and reported), `star` and `hierarchical` (the collectives, without
and with shared memory inside a node), `communicator`.
"""
