"""Extra outputs (`exports` in config.json): visited states, the noise model, fits of production planes."""
