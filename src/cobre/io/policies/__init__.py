"""Policy files: ours, and those of cobre-python."""
