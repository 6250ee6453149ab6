#!/usr/bin/env bash
# Counts the instructions of commands on stores of several sizes: what must not depend on noise. Exits 1 where
# one takes over 1.15 times its count on the smallest store. Needs valgrind (apt-get install valgrind).
#
#   benches/callgrind.sh [--stores FOLDER] [EVENTS…]    [1000 100000 1000000, in target/stores]
set -euo pipefail

source "$(dirname "$0")/common.sh"
folder=$target/stores
if [ "${1:-}" = --stores ]; then
    folder=$2
    shift 2
fi
sizes=("$@")
[ $# -gt 0 ] || sizes=(1000 100000 1000000)
if ! command -v valgrind > /dev/null; then
    echo "SKIPPED: instruction counts need valgrind (apt-get install valgrind)" >&2
    exit 0
fi
build
stores "$folder" "${sizes[@]}"
machine "$folder"

# The instructions of one command, whose answer goes to the file `said`.
count() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$NF" "$@" > said 2> counted ||
        { cat counted >&2 && return 1; }
    sed -n 's/.*Collected : //p' counted
}

# A daily path with some commands under valgrind; a line `name count` for each.
path() {
    local number job result
    number=$(date +%s%N)
    sed "s|Would a first-time|In number $number, would a first-time|" review.yaml > bench.yaml
    echo "Chapter $number. Nobody came." > manuscript/ch01.md
    NF_SESSION=$("$NF" start --resource bench/c --task review -q)
    export NF_SESSION
    job=$("$NF" freeze bench.yaml -q)
    echo "packet $(count packet "$job" --gate gate/c --out packet.txt -q)"
    "$here/../examples/canned-answer.sh" packet.txt reject > answer.txt
    result=$("$NF" reply answer.txt -q)
    echo "consume $(count consume "$result" --as gate/c -q)"
    echo "show $(count show "$result")"
    echo "status $(count status)"
    "$NF" resume "$NF_SESSION" -q > /dev/null
    echo "run-step $(count run step --cursor next -q)"
    echo "list $(count list checkpoint --limit 20)"
    "$NF" run finish --status completed -q > /dev/null
    "$NF" session move "$NF_SESSION" stale -q > /dev/null
    rm -f bench.yaml packet.txt answer.txt said counted
}

declare -A counts
for size in "${sizes[@]}"; do
    while read -r name instructions; do
        counts[$name,$size]=$instructions
    done < <(cd "$folder/$size" && path)
done
printf '\n| instructions |'
printf ' %s events |' "${sizes[@]}"
printf ' ratio | short of |\n|---|---|---|'
printf -- '---|%.0s' "${sizes[@]}"
echo
short=0
for name in packet consume show status list run-step; do
    first=${counts[$name,${sizes[0]}]} worst=0
    printf '| `%s` |' "${name/-/ }"
    for size in "${sizes[@]}"; do
        printf ' %s |' "${counts[$name,$size]}"
        ((counts[$name,$size] <= worst)) || worst=${counts[$name,$size]}
    done
    missed=''
    if ((worst * 100 > first * 115)); then missed='**1.15**' short=1; fi
    printf ' %s | %s |\n' "$(awk "BEGIN { printf \"%.3f\", $worst / $first }")" "$missed"
done
exit $short
