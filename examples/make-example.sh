#!/usr/bin/env bash
# Makes the store in .novelforge.example/, the same bytes each time: a whole daily path with a question
# about a chapter, a cut reply, a rejection, a repair and an acceptance.
#
#   examples/make-example.sh [FOLDER]        FOLDER: where the store goes [.novelforge.example]
#   NF=/path/to/nf examples/make-example.sh  runs that program instead of building it
#
# Time, clocks and randomness are fixed, which only a store made by `nf init --testing` allows. Files that
# git would not keep (head, lock, packets, …) are left out of the copy.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
target=${1:-$here/../.novelforge.example}
if [ -z "${NF:-}" ]; then
    cargo build --quiet --locked --manifest-path "$here/../Cargo.toml"
    NF=${CARGO_TARGET_DIR:-$here/../target}/debug/nf
fi
NF=$(realpath "$NF")
unset NF_DIR NF_SESSION NF_RUN NF_NONCE NF_OP NF_LOG

project=$(mktemp -d)
trap 'rm -rf "$project"' EXIT
cp -r "$here/manuscript" "$here/review-by-contract.yaml" "$project/"
cd "$project"

minute=0
nf() {
    # Each command happens five minutes after the one before.
    local now
    printf -v now '2026-01-15T%02d:%02d:00Z' $((9 + minute / 60)) $((minute % 60))
    minute=$((minute + 5))
    NF_NOW=$now NF_BOOT=example-machine/example-boot/time:1/$((1000 + minute * 60000)) NF_SEED=example \
        "$NF" --quiet "$@" > /dev/null
}
# A command that is refused, as it should be.
refused() { if nf "$@" 2> /dev/null; then echo "nf $* was not refused" >&2; exit 1; fi; }

nf init --git --testing
mkdir -p .novelforge/contracts
cp "$here/contracts/reader.engagement.yaml" .novelforge/contracts/
nf start --resource novel/pride --task review
nf freeze review-by-contract.yaml
nf packet --gate gate/ch01-review --out packet.txt
refused resume

# The first paste lost its end on the way; the second is whole.
"$here/canned-answer.sh" packet.txt reject > answer.txt
head -c 300 answer.txt > cut.txt
refused reply cut.txt
nf reply answer.txt
nf consume --as gate/ch01-review
nf resume

cp "$here/manuscript/ch01-repaired.md" manuscript/ch01.md
nf freeze review-by-contract.yaml
nf packet --gate gate/ch01-review --out packet.txt
"$here/canned-answer.sh" packet.txt accept > answer.txt
nf reply answer.txt
nf consume --as gate/ch01-review
nf resume
nf run step --cursor ch02/draft
nf run finish --status completed
nf verify

rm -rf "$target"
mkdir -m 700 "$target"
for kept in .gitignore .gitattributes store.json contracts log receipts blobs; do
    cp -r ".novelforge/$kept" "$target/"
done
find "$target/blobs" -mindepth 1 -type d -empty -delete
