#!/bin/bash
# One study on 4 ranks with the site's MPI. Cobre must be installed with mpi4py built for it: pip install 'pycobre[hpc]'
#
#   sbatch slurm-mpi.sh
#
# Two minutes before the time limit all ranks are asked to stop: they end at the same iteration and keep the policy.
# A job that runs again, because a node failed or you submitted it once more, continues from there.
#SBATCH --job-name=cobre
#SBATCH --ntasks=4
#SBATCH --cpus-per-task=1
#SBATCH --signal=TERM@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --time=01:00:00

set -euo pipefail

export COBRE_COMM_BACKEND=mpi
export OMP_NUM_THREADS=1
# How srun connects the ranks of this MPI: `srun --mpi=list` shows what the site has.
SLURM_MPI_TYPE=${SLURM_MPI_TYPE:-$(python3 -m cobre.launchfiles.slurm_mpi)}
export SLURM_MPI_TYPE

code=0
srun --cpus-per-task=1 --kill-on-bad-exit=1 \
  cobre run case --output output --auto-resume --threads 1 || code=$?
exit "$code"
