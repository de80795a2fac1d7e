"""Files of any content: written whole or not at all, read without trust, locked while in use."""
