#!/usr/bin/env bash
# The whole daily path in a temporary folder: a question about a chapter is frozen, goes out, comes back
# as a rejection, is consumed; the chapter is repaired, asked about again and accepted.
#
#   examples/daily-path.sh            builds nf, then runs it
#   NF=/path/to/nf examples/daily-path.sh    runs that program instead
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
if [ -z "${NF:-}" ]; then
    cargo build --quiet --locked --manifest-path "$here/../Cargo.toml"
    NF=${CARGO_TARGET_DIR:-$here/../target}/debug/nf
fi
NF=$(realpath "$NF")
unset NF_DIR NF_CONFIG NF_SESSION NF_RUN NF_NONCE NF_OP NF_NOW NF_BOOT NF_SEED

project=$(mktemp -d)
trap 'rm -rf "$project"' EXIT
cp -r "$here/manuscript" "$here/review.yaml" "$project/"
cd "$project"

say() { printf '\n== %s\n' "$*" >&2; }
nf() { printf '$ nf %s\n' "$*" >&2; "$NF" "$@"; }

say "A store, and a session that works on one resource at one task."
nf init
nf start --resource novel/pride --task review

say "Freeze the question with the exact bytes of the chapter, and print the packet."
nf freeze review.yaml
nf packet --gate gate/ch01-review --out packet.txt

say "Nothing has come back yet: resume says so with exit code 8."
nf resume || echo "exit $?"

say "The reviewer, here a canned answer, says: reject."
"$here/canned-answer.sh" packet.txt reject > answer.txt
nf reply answer.txt

say "The gate consumes the answer once; a second time changes nothing."
nf consume --as gate/ch01-review
nf consume --as gate/ch01-review

say "Go on: the cursor, and what to repair."
nf resume

say "The same question is not asked twice: exit code 3."
nf packet --gate gate/ch01-review || echo "exit $?"

say "Repair the chapter; another text is another question."
cp "$here/manuscript/ch01-repaired.md" manuscript/ch01.md
nf freeze review.yaml
nf packet --gate gate/ch01-review --out packet-2.txt
"$here/canned-answer.sh" packet-2.txt accept > answer-2.txt
nf reply answer-2.txt
nf consume --as gate/ch01-review --exit-verdict
nf resume
nf run finish --status completed

say "Prove that nothing recorded has changed."
nf verify
nf log --limit 30
echo "the daily path is done"
