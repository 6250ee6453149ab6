#!/usr/bin/env bash
# A gate for a script: is the question in a job file answered, and was the answer a passing one?
# Exits with nf's own codes: 0 pass, 10 another verdict, 8 no answer yet, 4, 5, 9, 11 as in the README.
#
#   examples/ci-gate.sh JOB-FILE GATE [ANSWER-FILE]
#
# First run: freezes the question, writes its packet to packet.txt and exits 8. With an answer, or once one
# has come in: takes it, consumes it for GATE and exits by its verdict. NF names another nf program.
set -euo pipefail

job_file=$1
gate=$2
answer=${3:-}
nf=${NF:-nf}

job=$("$nf" freeze "$job_file" -q)
if [ -n "$answer" ]; then
    "$nf" reply "$answer" -q
fi
if "$nf" packet "$job" --gate "$gate" --out packet.txt -q > /dev/null; then
    echo "packet.txt waits for its answer" >&2
    exit 8
else
    code=$?
fi
# 3: the question has its answer already, which is what a gate waits for.
[ "$code" -eq 3 ] || exit "$code"
# The gate looks at the result of this very question.
listed=$("$nf" list result --job "$job" --state valid --limit 1 --json)
result=$(sed -n 's/.*"id": "\(x-[0-9a-z]*\)".*/\1/p' <<< "$listed" | head -n 1)
[ -n "$result" ] || exit "$code"
exec "$nf" consume "$result" --as "$gate" --exit-verdict
