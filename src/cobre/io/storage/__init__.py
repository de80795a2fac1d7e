"""Files of any content: atomic and confined writing, reading of untrusted files, arrays and records."""
