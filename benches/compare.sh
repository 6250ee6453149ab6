#!/usr/bin/env bash
# Times every command of the release build against two programs in the same run: floor (spawn, open, lock,
# append 300 bytes, fdatasync, exit) for those that write, bare (nothing) for those that read.
#
#   benches/compare.sh [ROUNDS] [EVENTS]     [20 rounds, a second store of 1000 events]
#   NF=/path/to/nf benches/compare.sh        times that program instead of building it
#
# The stores are made in a temporary folder under target/, on the disk of the repository. Prints tables;
# docs/benchmarks.md holds the figures of one machine.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
rounds=${1:-20}
events=${2:-1000}
target=${CARGO_TARGET_DIR:-$here/../target}
if [ -z "${NF:-}" ]; then
    cargo build --quiet --release --locked --manifest-path "$here/../Cargo.toml"
    NF=$target/release/nf
fi
NF=$(realpath "$NF")
unset NF_DIR NF_SESSION NF_RUN NF_NONCE NF_OP NF_LOG NF_NOW NF_BOOT NF_SEED

mkdir -p "$target"
work=$(mktemp -d "$(realpath "$target")/compare.XXXXXX")
trap 'rm -rf "$work"' EXIT
for program in floor bare measure; do
    rustc --edition 2024 -O -C strip=symbols -o "$work/$program" "$here/$program.rs"
done

echo "machine: $(nproc) cores, load $(cut -d' ' -f1-3 /proc/loadavg), $(stat -f -c %T "$work"), $(uname -sr)"
echo "nf: $(stat -c %s "$NF") bytes, $("$NF" --version)"
"$here/seed.sh" "$NF" "$work/empty" 0
"$here/seed.sh" "$NF" "$work/seeded" "$events"
for store in empty seeded; do
    "$work/measure" "$NF" "$work/floor" "$work/bare" "$here/../examples/canned-answer.sh" \
        "$work/$store" "$rounds" "$store store"
done

if command -v strace > /dev/null; then
    printf '\nsystem calls of one `run step` that can wait for the disk or the lock\n\n'
    cd "$work/empty"
    NF_SESSION=$("$NF" start --resource bench/b --task review -q)
    export NF_SESSION
    strace -f -c -e trace=flock,fsync,fdatasync,write,pwrite64,rename,renameat2,openat,clone3,execve \
        -o "$work/calls" "$NF" run step --cursor next -q > /dev/null
    awk 'NR > 2 && $1 ~ /^[0-9]/ && NF >= 5 { print $4, $NF }' "$work/calls"
fi
