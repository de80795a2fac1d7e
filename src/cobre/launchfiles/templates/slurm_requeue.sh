# Stopped before the time was up, and not by scancel: the same job goes on when it is its turn again.
if [ "$code" -eq 143 ] && [ "$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%T)" = RUNNING ]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
