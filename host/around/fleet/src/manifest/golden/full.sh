#!/bin/bash
#SBATCH --job-name=chat-load
#SBATCH --nodes=8
#SBATCH --ntasks=8
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --time=00:30:00
#SBATCH --mem=64G
#SBATCH --partition=cpu
#SBATCH --account=bench
#SBATCH --output=chat-load-%j.log
# Stops the run before the time limit, so that its records are whole.
#SBATCH --signal=TERM@120
set -euo pipefail

export RUNNER_FLEET_TOKEN_FILE=/shared/token
# The processes know the first host themselves, and not this port.
read -r first < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
export RUNNER_FLEET_COORDINATOR="$first:9000"

# A process that ends early or badly does not end the others: the coordinator judges that.
exec srun --kill-on-bad-exit=0 --wait=0 --cpus-per-task=16 --container-image='registry.example#runner:0.1.0' runner fleet '/shared/it'\''s mine/chat.toml' --output-dir runs --header 'x: $HOME `id`'
