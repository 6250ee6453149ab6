#!/usr/bin/env bash
# Makes a project whose store holds at least EVENTS events: whole daily paths, each with a rejection, and
# single steps between them.
#
#   benches/seed.sh NF FOLDER EVENTS
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
nf=$1
folder=$2
events=$3
mkdir -p "$folder"
cp -r "$here/../examples/manuscript" "$here/../examples/review.yaml" "$folder/"
cd "$folder"
"$nf" init -q > /dev/null

count() { cat .novelforge/log/*.jsonl | grep -o '"type":"[a-z]*\.[a-z_]*"' | wc -l; }
turn=0
while [ "$events" -gt 0 ] && [ "$(count)" -lt "$events" ]; do
    turn=$((turn + 1))
    NF_SESSION=$("$nf" start --resource bench/seed --task review -q)
    export NF_SESSION
    # Another question each time: one that has its answer is not asked again.
    sed "s|^  question: .*|  question: Is number $turn any good?|; s|^subject: .*|subject: bench/seed-$turn|" \
        review.yaml > seed.yaml
    job=$("$nf" freeze seed.yaml -q)
    "$nf" packet "$job" --gate gate/seed --out packet.txt -q > /dev/null
    "$here/../examples/canned-answer.sh" packet.txt reject > answer.txt
    result=$("$nf" reply answer.txt -q)
    "$nf" consume "$result" --as gate/seed -q > /dev/null
    "$nf" resume "$NF_SESSION" -q > /dev/null
    for step in 1 2 3 4 5; do "$nf" run step --cursor "step-$step" -q > /dev/null; done
    "$nf" run finish --status completed -q > /dev/null
    "$nf" session move "$NF_SESSION" stale -q > /dev/null
done
rm -f seed.yaml packet.txt answer.txt
echo "$(count) events, $turn daily paths, $(cat .novelforge/log/*.jsonl | wc -c) bytes of log"
