"""The tcp backend: a star around rank 0, for ranks that share no memory.

Read in this order: `protocol` (the wire format), `rendezvous` (how the ranks find and trust each other), `transport`
with its two sides `coordinator` and `worker` (how payloads move), `liveness_monitor` (how a failure is detected and
reported), `star` and `two_levels` (the collectives, without and with shared memory inside a host), `communicator`.
"""
