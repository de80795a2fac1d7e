"""Launch files: how compose, Kubernetes and Slurm start the ranks of a study. `cobre launch` prints them.

The text is in `templates/`; what is filled in is checked in `settings`. Nothing here starts a process, except
`slurm_step`, which a Slurm step runs in front of the command on every rank.
"""
