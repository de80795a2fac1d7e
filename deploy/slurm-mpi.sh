#!/bin/bash
# One study on 4 ranks with the site's MPI. Cobre must be installed with mpi4py built for it: pip install 'cobre[mpi]'
#
#   sbatch slurm-mpi.sh
#
# Two minutes before the time is up all ranks are asked to stop: they end at the same iteration and keep the policy.
#SBATCH --job-name=cobre
#SBATCH --ntasks=4
#SBATCH --cpus-per-task=1
#SBATCH --signal=TERM@120
#SBATCH --time=01:00:00

set -euo pipefail

export COBRE_COMM_BACKEND=mpi
export OMP_NUM_THREADS=1

srun --cpus-per-task=1 --kill-on-bad-exit=1 \
  cobre run case --output output --auto-resume --threads 1
