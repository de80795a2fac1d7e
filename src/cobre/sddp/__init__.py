"""The method: forward passes, backward passes, cuts, bounds. Folder order is execution order."""
