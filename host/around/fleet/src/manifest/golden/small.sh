#!/bin/bash
#SBATCH --job-name=chat-load
#SBATCH --nodes=8
#SBATCH --ntasks=8
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --time=00:30:00
#SBATCH --output=chat-load-%j.log
# Stops the run before the time limit, so that its records are whole.
#SBATCH --signal=TERM@120
set -euo pipefail

# A token for this job alone; srun hands it to the processes.
RUNNER_FLEET_TOKEN="$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')"
export RUNNER_FLEET_TOKEN

# A process that ends early or badly does not end the others: the coordinator judges that.
exec srun --kill-on-bad-exit=0 --wait=0 --cpus-per-task=16 runner fleet chat.toml --output-dir runs
