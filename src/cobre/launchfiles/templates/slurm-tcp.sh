#!/bin/bash
# One study on @ranks@ ranks without MPI: they communicate over tcp, and rank 0 is the first task of the step.
#
#   sbatch slurm-tcp.sh
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

# The secret is in a file that all nodes can read and no other user can; it is removed when the job ends. A requeued job
# replaces the file that it could not remove before.
export COBRE_TCP_SECRET_FILE="$SLURM_SUBMIT_DIR/.cobre-secret-$SLURM_JOB_ID"
trap 'rm -f "$COBRE_TCP_SECRET_FILE"' EXIT
rm -f "$COBRE_TCP_SECRET_FILE"
(umask 077 && set -o noclobber && python3 -c 'import secrets; print(secrets.token_hex(32))' > "$COBRE_TCP_SECRET_FILE")
export OMP_NUM_THREADS=1

# A rank that fails informs the others, which end by themselves; rank 0 may need a moment longer to write its report.
code=0
srun --cpus-per-task=@threads@ --kill-on-bad-exit=0 --wait=120 \
  python3 -m cobre.launchfiles.slurm_step \
  @command@ || code=$?
@requeue@exit "$code"
