"""What training starts from: checkpoints, stored policies, and whether they fit the problem at hand."""
