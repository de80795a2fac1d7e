"""What a case may ask for beyond results (`exports` in config.json): states, noise, and how planes were fitted."""
