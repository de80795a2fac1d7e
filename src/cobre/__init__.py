"""Cobre: distributed SDDP training that returns the same bits everywhere.

Importing this package starts nothing: no process, no socket, no MPI.
"""

__version__ = "0.1.0"
