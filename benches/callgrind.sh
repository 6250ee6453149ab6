#!/usr/bin/env bash
# Counts the instructions of commands on stores of several sizes: what must not depend on noise. Exits 1 where
# one takes over 1.15 times its count on the smallest store. Needs valgrind (apt-get install valgrind).
#
#   benches/callgrind.sh [--stores FOLDER] [--only commands|queue] [SIZE…]
#       [1000 100000 1000000, in target/stores]
#
# SIZE is events for the commands, and queued questions for a claim; a claim is also counted behind 10,000
# questions that nobody may claim.
set -euo pipefail

source "$(dirname "$0")/common.sh"
folder=$target/stores only=''
while [[ "${1:-}" == --* ]]; do
    case $1 in
        --stores) folder=$2 ;;
        --only) only=$2 ;;
    esac
    shift 2
done
sizes=("$@")
[ $# -gt 0 ] || sizes=(1000 100000 1000000)
if ! command -v valgrind > /dev/null; then
    echo "SKIPPED: instruction counts need valgrind (apt-get install valgrind)" >&2
    exit 0
fi
build
machine "${folder%/*}"
short=0

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

# Makes the project FOLDER/queue-SIZE[-KIND] that is not there yet, as `stores` does.
queue() {
    local name=queue-$1${2:+-$2} memory handoff
    [ ! -d "$folder/$name" ] || return 0
    echo "making $name" >&2
    memory=$(mktemp -d /dev/shm/queue.XXXXXX)
    cp -r "$here/../examples/manuscript" "$memory/"
    # Any family may answer, programs too.
    sed '/^  families:/d' "$here/../examples/review.yaml" > "$memory/review.yaml"
    (
        cd "$memory"
        "$NF" init -q > /dev/null
        "$NF" start --resource bench/queue --task review -q > /dev/null
        "$NF" freeze review.yaml -q > /dev/null
        handoff=$("$NF" handoff open --class semantic_reviewer -q)
        "$NF" handoff claim --class semantic_reviewer --worker bench -q > /dev/null
        "$NF" handoff cancel "$handoff" -q > /dev/null
        "$NF" session new --resource bench/queue --task review -q > /dev/null
    )
    cargo run --quiet --release --locked --manifest-path "$here/../Cargo.toml" --example grow -- \
        "$memory" --queue "$1" ${2:+"$2" 10000} >&2
    rm -rf "$memory/.novelforge/index"
    mkdir -p "$folder"
    cp -a "$memory" "$folder/$name"
    rm -rf "$memory"
    (cd "$folder/$name" && "$NF" status -q > /dev/null)
    sync -f "$folder"
}

# A claim on each queue, after one that does not count.
claims() {
    local first=0 name instructions missed
    printf '\n| a claim from | instructions | ratio | short of |\n|---|---|---|---|\n'
    for name in "$@"; do
        instructions=$(
            cd "$folder/$name"
            claim=(handoff claim --class semantic_reviewer --worker bench --out packet.txt -q)
            "$NF" "${claim[@]}" > /dev/null
            count "${claim[@]}"
            rm -f packet.txt said counted
        )
        ((first > 0)) || first=$instructions
        missed=''
        if ((instructions * 100 > first * 115)); then missed='**1.15**' short=1; fi
        printf '| %s | %s | %s | %s |\n' "$name" "$instructions" \
            "$(awk "BEGIN { printf \"%.3f\", $instructions / $first }")" "$missed"
    done
}

if [ "$only" != commands ]; then
    names=()
    for size in "${sizes[@]}"; do
        queue "$size"
        names+=("queue-$size")
    done
    for kind in later family review; do
        queue "${sizes[0]}" "$kind"
        names+=("queue-${sizes[0]}-$kind")
    done
    claims "${names[@]}"
fi
[ "$only" != queue ] || exit $short

stores "$folder" "${sizes[@]}"
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
