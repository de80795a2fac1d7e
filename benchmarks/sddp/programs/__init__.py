"""What runs in a process of its own: one training run, told as one line of JSON."""
