# Stopped by the signal before the time limit, and not by scancel: back into the queue with the same job.
if [ "$code" -eq 143 ] && [ "$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%T)" = RUNNING ]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
