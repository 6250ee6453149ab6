#!/usr/bin/env bash
# Measures the static release build against its aims and prints the tables of docs/benchmarks.md for this
# machine. Exits 1 where a row falls short; the row says of what.
#
#   benches/compare.sh [--quick] [--rounds N] [--only PART] [--stores FOLDER] [EVENTS…]
#   NF=/path/to/nf benches/compare.sh    measures that program instead of building it
#
# EVENTS are the sizes of the stores, by default 1000 100000 1000000, with --quick 1000 10000; the empty store
# is always one. PART is commands, floors, whole, binary, calls or build; without it all of them run but build, a clean
# build in a folder of its own. The stores are kept in FOLDER, by default target/stores, on whose disk everything
# is timed; remove it after a change of the format. A new command is a line in the ROWS of measure.rs.
set -euo pipefail

source "$(dirname "$0")/common.sh"
rounds=20 only='' folder=$target/stores sizes=()
defaults=(1000 100000 1000000)
while [ $# -gt 0 ]; do
    case $1 in
        --quick) defaults=(1000 10000) ;;
        --rounds) rounds=$2 && shift ;;
        --only) only=$2 && shift ;;
        --stores) folder=$2 && shift ;;
        [0-9]*) sizes+=("$1") ;;
        *) sed -n '2,/^set/{s/^# \{0,1\}//p}' "$0" >&2 && exit 2 ;;
    esac
    shift
done
[ ${#sizes[@]} -gt 0 ] || sizes=("${defaults[@]}")
part() { [ "$only" = "$1" ] || { [ -z "$only" ] && [ "$1" != build ]; }; }

build
stores "$folder" 0 "${sizes[@]}"
folder=$(realpath "$folder")
# A path that is not on the disk of the stores would make the programs slower to start than nf is.
programs=$(mktemp -d "$folder/programs.XXXXXX")
trap 'rm -rf "$programs"' EXIT
for program in floor bare measure; do
    rustc --edition 2024 -O -C strip=symbols -C target-feature=+crt-static -C relocation-model=static \
        -o "$programs/$program" "$here/$program.rs"
done
cp "$NF" "$programs/nf"
machine "$folder"
short=0
if part commands; then
    printf '\n%s rounds; times are medians in milliseconds, ratios medians of the pairs\n\n' "$rounds"
    "$programs/measure" commands "$programs/nf" "$programs/floor" "$programs/bare" \
        "$here/../examples/canned-answer.sh" "$rounds" "$folder" 0 "${sizes[@]}" || short=1
fi
if part floors; then
    printf '\nwhat the syncs of a command cost by themselves, medians of %s\n\n' "$((rounds * 5))"
    "$programs/measure" floors "$programs/floor" "$programs/bare" "$programs" "$((rounds * 5))"
fi
if part whole; then
    largest=$folder/${sizes[-1]}
    echo
    "$programs/measure" whole "$programs/nf" "$largest" "$(events "$largest")" || short=1
fi
if part binary; then
    bytes=$(stat -c %s "$NF")
    missed=$( ((bytes <= 10 << 20)) || echo '**10 MiB**')
    printf '\n| binary | bytes | short of |\n|---|---|---|\n| stripped | %s | %s |\n' "$bytes" "$missed"
    [ -z "$missed" ] || short=1
fi
if part calls && command -v strace > /dev/null; then
    printf '\nsystem calls of one `run step`: those that can wait for the disk or the lock, and opening\n\n'
    (
        cp -a "$folder/0" "$programs/calls"
        cd "$programs/calls"
        NF_SESSION=$("$NF" start --resource bench/calls --task review -q)
        export NF_SESSION
        strace -f -c -e trace=flock,fsync,fdatasync,write,pwrite64,rename,renameat2,open,openat,clone3,execve \
            -o calls "$NF" run step --cursor next -q > /dev/null
        awk 'NR > 2 && $1 ~ /^[0-9]/ && NF >= 5 { print $4, $NF }' calls
        "$NF" session move "$NF_SESSION" stale -q > /dev/null
    )
fi
if part build; then
    begun=$SECONDS
    (cd "$here/.." && cargo static --quiet --target-dir "$programs/target")
    taken=$((SECONDS - begun))
    missed=$( ((taken <= 360)) || echo '**360 s**')
    printf '\n| build | seconds | short of |\n|---|---|---|\n| clean release | %s | %s |\n' "$taken" "$missed"
    [ -z "$missed" ] || short=1
fi
exit $short
