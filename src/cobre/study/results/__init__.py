"""What training and simulation give back to scripts."""
