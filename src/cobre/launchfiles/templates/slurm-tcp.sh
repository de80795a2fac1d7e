#!/bin/bash
# One study on @ranks@ ranks without MPI: they talk over tcp, and rank 0 is the first task of the step.
#
#   sbatch slurm-tcp.sh
#
# Two minutes before the time is up all ranks are asked to stop: they end at the same iteration and keep the policy.
#SBATCH --job-name=@name@
#SBATCH --ntasks=@ranks@
#SBATCH --cpus-per-task=@threads@
#SBATCH --signal=TERM@120
@directives@
set -euo pipefail

# The secret lies where all nodes can read it and nobody else can, and goes when the job ends.
COBRE_TCP_SECRET_FILE=$(umask 077 && mktemp "$SLURM_SUBMIT_DIR/.cobre-secret.XXXXXX")
trap 'rm -f "$COBRE_TCP_SECRET_FILE"' EXIT
python3 -c 'import secrets; print(secrets.token_hex(32))' > "$COBRE_TCP_SECRET_FILE"
export COBRE_TCP_SECRET_FILE
export OMP_NUM_THREADS=1

srun --cpus-per-task=@threads@ --kill-on-bad-exit=1 \
  python3 -m cobre.launchfiles.slurm_step \
  @command@
