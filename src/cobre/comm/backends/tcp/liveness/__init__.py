"""Control connections: heartbeats, failure detection, and how a failure reaches all ranks."""
