"""How the ranks of a tcp run find and authenticate each other, before the first collective.

Rank 0 listens (`listener`) and accepts (`acceptor`); every other rank connects (`connector`). A connection that is
accepted but not yet authenticated is a `pending_connection`. Both ends run the same `handshake`, whose proofs are in
`authentication`; `secret` and `tls` load what the user configured; `address` parses and resolves addresses.

When all have met, `ring` connects neighbouring hosts with each other.

Nothing here knows of collectives: the result is authenticated sockets by rank, which `tcp.connect` turns into channels.
"""
