"""What the launcher and its fork server agree on."""

MESSAGE_BYTES = 1 << 16
"""The largest message on their socket, which keeps the boundaries of messages: a longer one would be cut off."""
