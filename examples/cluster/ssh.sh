#!/bin/sh
# Starts a worker on each host, for a scheduler on this one; ends them with it.
#
#   ./ssh.sh user@host1 user@host2
#
# Every host has the same npumake[dask] in VENV, and the same remote cache.
set -eu

VENV=${VENV:-/opt/npumake}
REMOTE=${NPUMAKE_CACHE_REMOTE:?is the cache that all hosts reach}
PORT=${PORT:-8786}
HERE=$(hostname -f)

"$VENV/bin/dask" scheduler --port "$PORT" &
trap 'kill 0' INT TERM EXIT

for host in "$@"; do
    # -tt: the worker ends when this connection does.
    ssh -tt "$host" \
        "NPUMAKE_CACHE_REMOTE='$REMOTE' NPUMAKE_CACHE=\$HOME/.cache/npumake \
        '$VENV/bin/npumake' worker tcp://$HERE:$PORT --name '$host'" &
done

echo "npumake build --executor dask --scheduler tcp://$HERE:$PORT"
wait
