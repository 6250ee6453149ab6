#!/usr/bin/env bash
# How many calls a second one client of `nf mcp` gets that asks all at once, beside one that waits for each answer
# and so pays one sync a call, in turns; and what an idle server has resident and takes to begin. Exits 1 where
# the median ratio is under 5, or an idle server has more than 12 MiB.
#
#   benches/mcp.sh [--folder FOLDER] [CALLS] [ROUNDS]    [2000 5, in target/mcp]
#   NF=/path/to/nf benches/mcp.sh    measures that program instead of building it
set -euo pipefail

source "$(dirname "$0")/common.sh"
folder=$target/mcp
if [ "${1:-}" = --folder ]; then
    folder=$2
    shift 2
fi
calls=${1:-2000} rounds=${2:-5}
build
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
"$NF" init -q > /dev/null
"$NF" start --resource bench/mcp --task review -q > /dev/null
machine .
python3 "$here/mcp.py" "$NF" "$calls" "$rounds"
