#!/usr/bin/env bash
# Makes a project with a store in which the real commands recorded whole daily paths, with accepted and
# rejected answers, one that did not bind, steps and checkpoints, and sittings of plain steps between them.
#
#   benches/seed.sh NF FOLDER PATHS
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
nf=$1
folder=$2
paths=$3
mkdir -p "$folder"
cp -r "$here/../examples/manuscript" "$here/../examples/review.yaml" "$folder/"
cd "$folder"
"$nf" init -q > /dev/null

steps() {
    local step
    for ((step = 1; step <= $1; step++)); do "$nf" run step --cursor "step-$step" -q > /dev/null; done
    "$nf" run finish --status completed -q > /dev/null
    "$nf" session move "$NF_SESSION" completed -q > /dev/null
}
begin() {
    NF_SESSION=$("$nf" start --resource "bench/seed-$turn" --task "$1" -q)
    export NF_SESSION
}
for ((turn = 1; turn <= paths; turn++)); do
    # grow.rs puts another number in the place of these zeros into each copy.
    part=n000000-$turn
    begin review
    # Another text, question and subject each time: one that has its answer is not asked again.
    sed "s|^  question: .*|  question: Is $part any good?|; s|^subject: .*|subject: bench/$part|" \
        review.yaml > seed.yaml
    { cat "$here/../examples/manuscript/ch01.md"; echo "This is $part."; } > manuscript/ch01.md
    job=$("$nf" freeze seed.yaml -q)
    "$nf" packet "$job" --gate "gate/$part" --out packet.txt -q > /dev/null
    verdict=$( ((turn % 2)) && echo reject || echo accept)
    if ((turn % 3 == 0)); then
        # An answer that lacks its evidence does not bind.
        "$here/../examples/canned-answer.sh" packet.txt "$verdict" |
            sed 's|"evidence": \[.*\]|"evidence": []|' | "$nf" reply - -q > /dev/null 2>&1 || true
    fi
    "$here/../examples/canned-answer.sh" packet.txt "$verdict" |
        sed "s|\"evidence\": \[\"|&Of $part: |" > answer.txt
    result=$("$nf" reply answer.txt -q)
    "$nf" consume "$result" --as "gate/$part" -q > /dev/null
    "$nf" resume "$NF_SESSION" -q > /dev/null
    "$nf" run step --cursor repaired -q > /dev/null
    "$nf" checkpoint save --boundary other -q > /dev/null
    steps 3
    begin draft
    steps 6
done
rm -f seed.yaml packet.txt answer.txt
