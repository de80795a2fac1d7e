"""How the ranks of a tcp run find and trust each other, before the first collective.

Rank 0 listens (`listener`) and accepts (`acceptor`); every other rank connects (`connector`). A connection that is
accepted but not authenticated yet is a `pending_connection`. Both sides run the same `handshake`, whose proofs are in
`authentication`; `secret` and `tls` load what the user configured, `address` parses and resolves host names.

Nothing here knows of collectives: the result is authenticated sockets by rank, which `tcp.connect` turns into channels.
"""
