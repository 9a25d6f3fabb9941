#!/bin/sh
# Slurm on this one machine: a controller and four node daemons, for as long as a command runs.
#
#     slurm.sh COMMAND...
#
# It needs Debian's packages slurm-wlm and munge, and root. Nothing of a Slurm that is configured already is touched:
# ports, folders, key and configuration are this script's own, and go when the command has ended. Exits as the command;
# with 75 if Slurm did not come up; with 124 if the command did not end in five minutes, and then Slurm's logs say more.
set -eu
nodes=4
folder=$(mktemp -d)
host=$(hostname -s)
cores=$(nproc)
# Several may run at the same time.
port=$((20000 + $$ % 2000 * 5))
chmod 755 "$folder"
mkdir -m 755 "$folder/state" "$folder/log"
mkdir -m 700 "$folder/key"
head -c 128 /dev/urandom > "$folder/key/munge.key"
chmod 400 "$folder/key/munge.key"
cat > "$folder/slurm.conf" <<CONF
ClusterName=fleet
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/key/munge.socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/%n.pid
SlurmctldLogFile=$folder/log/slurmctld
SlurmdLogFile=$folder/log/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
ReturnToService=2
SwitchType=switch/none
MpiDefault=none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
NodeName=node[1-$nodes] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + nodes))] CPUs=$cores
PartitionName=fleet Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF="$folder/slurm.conf"
started=""
leave() {
    code=$?
    for pid in $started; do kill "$pid" 2> /dev/null || true; done
    (sleep 10; for pid in $started; do kill -KILL "$pid" 2> /dev/null || true; done) > /dev/null 2>&1 &
    late=$!
    for pid in $started; do wait "$pid" 2> /dev/null || true; done
    kill "$late" 2> /dev/null || true
    if [ "$code" -ne 0 ]; then tail -n 20 "$folder"/log/* >&2 || true; fi
    rm -rf "$folder"
    exit "$code"
}
trap leave EXIT INT TERM
/usr/sbin/munged --foreground --force --key-file "$folder/key/munge.key" --socket "$folder/key/munge.socket" \
    --pid-file "$folder/key/munged.pid" --log-file "$folder/log/munged" --seed-file "$folder/key/seed" > /dev/null 2>&1 &
started="$started $!"
# Waits until a condition holds, for a minute.
await() {
    what=$1
    tries=0
    until eval "$2"; do
        tries=$((tries + 1))
        if [ "$tries" -gt 600 ]; then
            echo "$what does not come up" >&2
            exit 75
        fi
        sleep 0.1
    done
}
await munged '[ -S "$folder/key/munge.socket" ]'
slurmctld -D -i -f "$SLURM_CONF" > "$folder/log/controller" 2>&1 &
started="$started $!"
node=1
while [ "$node" -le "$nodes" ]; do
    mkdir "$folder/node$node"
    slurmd -D -N "node$node" -f "$SLURM_CONF" > "$folder/log/daemon$node" 2>&1 &
    started="$started $!"
    node=$((node + 1))
done
await 'one of the nodes' '[ "$(timeout 10 sinfo --noheader --format %D --states idle 2> /dev/null)" = "$nodes" ]'
timeout --kill-after 10 300 "$@"
