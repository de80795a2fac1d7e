"""Files of any content: atomic writing, reading of untrusted files, locks."""
