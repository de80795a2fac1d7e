"""Files by which other programs start the ranks of a study: compose, Kubernetes, Slurm. `cobre launch` prints them.

The text lives in `templates/`; what is filled in is checked in `settings`. Nothing here starts a process, except
`slurm_step`, which a Slurm step runs in front of the command on every rank.
"""
