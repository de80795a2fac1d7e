"""config.json: its records, what the program makes of them, and settings given beside the file."""
