"""The wire format: frames, headers and messages, packed and parsed without any I/O."""
