#!/usr/bin/env bash
# Eight workers drain a queue: commands a second (claim, complete, consume) beside as many programs that only
# append, in turns. Prints the median ratio and exits 1 where it is under 0.8.
#
#   benches/drain.sh [--folder FOLDER] [HANDOFFS] [WORKERS]    [2000 8, in target/drain]
#   NF=/path/to/nf benches/drain.sh    measures that program instead of building it
set -euo pipefail

source "$(dirname "$0")/common.sh"
folder=$target/drain
if [ "${1:-}" = --folder ]; then
    folder=$2
    shift 2
fi
handoffs=${1:-2000} workers=${2:-8}
build
rm -rf "$folder"
mkdir -p "$folder"
folder=$(realpath "$folder")
for program in floor drain; do
    rustc --edition 2024 -O -C strip=symbols -C target-feature=+crt-static -C relocation-model=static \
        -o "$folder/$program" "$here/$program.rs"
done
cp "$NF" "$folder/nf"
machine "$folder"

# Each question has a subject and a session of its own; they are queued in memory, and moved to the disk.
memory=$(mktemp -d /dev/shm/drain.XXXXXX)
trap 'rm -rf "$memory"' EXIT
cp -r "$here/../examples/manuscript" "$memory/"
cd "$memory"
"$NF" init -q > /dev/null
for ((number = 1; number <= handoffs; number++)); do
    # Any family may answer, programs too.
    sed "s|^subject: .*|subject: bench/q$number|; /^  families:/d" "$here/../examples/review.yaml" > job.yaml
    session=$("$NF" start --resource "bench/q$number" --task review -q)
    job=$("$NF" freeze job.yaml --session "$session" -q)
    "$NF" handoff open "$job" --class semantic_reviewer --session "$session" -q > /dev/null
done
rm -rf .novelforge/index
cp -a "$memory" "$folder/project"
cd "$folder/project"
"$NF" status -q > /dev/null
sync -f "$folder"
"$folder/drain" "$folder/nf" "$folder/floor" "$folder/project" "$workers"
