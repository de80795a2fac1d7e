"""A training run from beginning to end: its context, interruptions, callbacks and digest."""
