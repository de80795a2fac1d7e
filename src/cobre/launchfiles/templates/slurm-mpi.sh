#!/bin/bash
# One study on @ranks@ ranks with the site's MPI. Cobre must be installed with mpi4py built for it: pip install 'cobre[mpi]'
#
#   sbatch slurm-mpi.sh
#
# Two minutes before the time is up all ranks are asked to stop: they end at the same iteration and keep the policy.
#SBATCH --job-name=@name@
#SBATCH --ntasks=@ranks@
#SBATCH --cpus-per-task=@threads@
#SBATCH --signal=TERM@120
@directives@
set -euo pipefail

export COBRE_COMM_BACKEND=mpi
export OMP_NUM_THREADS=1

srun --cpus-per-task=@threads@ --kill-on-bad-exit=1 \
  @command@
