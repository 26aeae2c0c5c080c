#!/usr/bin/env bash
# Runs a command; its seconds are a line `SECONDS NAME` at the end of the file that TKE_ENI_STAGES names, if it does.
# Usage: timed.sh NAME COMMAND...
set -uo pipefail
name=$1 code=0
shift
start=$(date +%s.%N)
"$@" || code=$?
if [[ -n ${TKE_ENI_STAGES-} ]]; then
  awk -v start="$start" -v end="$(date +%s.%N)" -v name="$name" 'BEGIN { printf "%.1f %s\n", end - start, name }' >>"$TKE_ENI_STAGES"
fi
exit "$code"
