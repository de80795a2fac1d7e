"""The rendezvous: the ranks of a tcp run find and authenticate each other, before the first collective.

Rank 0 listens (`listener`, which also resolves addresses and makes TLS contexts) and accepts (`acceptor`); every other
rank connects (`connector`). Both ends run the same `handshake`, with proofs that they hold the same secret. When all
ranks have met, `ring` connects neighbouring hosts with each other.

Independent of collectives: the result is authenticated sockets by rank, which `connect_transport` in
`tcp/communicator.py` turns into channels.
"""
