#!/bin/bash
# One study on @ranks@ ranks with the site's MPI. Cobre must be installed with mpi4py built for it: pip install 'pycobre[hpc]'
#
#   sbatch slurm-mpi.sh
#
# Two minutes before the time limit all ranks are asked to stop: they end at the same iteration and keep the policy.
# A job that runs again, because a node failed or you submitted it once more, continues from there.
#SBATCH --job-name=@name@
#SBATCH --ntasks=@ranks@
#SBATCH --cpus-per-task=@threads@
#SBATCH --signal=TERM@120
#SBATCH --requeue
#SBATCH --open-mode=append
@directives@
set -euo pipefail

export COBRE_COMM_BACKEND=mpi
export OMP_NUM_THREADS=1
# How srun connects the ranks of this MPI: `srun --mpi=list` shows what the site has.
@mpi_type@

code=0
srun --cpus-per-task=@threads@ --kill-on-bad-exit=1 \
  @command@ || code=$?
@requeue@exit "$code"
