#!/usr/bin/env bash
# Walks the daily path, or a part of it, through `nf mcp` with clients that others wrote: fastmcp (Python), the
# TypeScript SDK and the inspector's command line. Installs what is missing below FOLDER by pip and npm; each client
# that cannot be had is skipped and said to be.
#
#   NF=/path/to/nf examples/mcp-clients.sh FOLDER
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
nf=${NF:-nf}
mkdir -p "$1"
folder=$(cd "$1" && pwd)

# A project with a store, a text and its question.
project() {
    rm -rf "${folder:?}/$1"
    mkdir -p "$folder/$1"
    cp -r "$here/manuscript" "$folder/$1/"
    cp "$here/review.yaml" "$folder/$1/job.yaml"
    (cd "$folder/$1" && "$nf" init -q > /dev/null)
    echo "$folder/$1"
}
skip() { echo "SKIPPED: $1"; }

venv=$folder/venv
if [ ! -x "$venv/bin/python3" ]; then
    python3 -m venv "$venv" 2> /dev/null || python3 -m venv --without-pip "$venv"
fi
if "$venv/bin/python3" -c 'import fastmcp' 2> /dev/null ||
    python3 -m pip --python "$venv/bin/python3" install --quiet fastmcp; then
    cat > "$folder/fast.py" << 'PYTHON'
import asyncio
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport


async def main():
    nf, folder = sys.argv[1], sys.argv[2]
    async with Client(StdioTransport(nf, ["-C", folder, "mcp"])) as client:
        tools = await client.list_tools()
        assert tools[0].name == "nf_start", tools[0]
        await client.call_tool("nf_start", {"resource": "novel/pride", "task": "review"})
        with open(f"{folder}/job.yaml") as job:
            await client.call_tool("nf_freeze", {"text": job.read()})
        packet = await client.call_tool("nf_packet", {})
        assert packet.structured_content["data"]["packet"].startswith("NF PACKET "), packet
        refused = await client.call_tool("nf_show", {"id": "x-0000"}, raise_on_error=False)
        assert refused.is_error and refused.structured_content["error"]["kind"] == "unknown_id", refused
        print(f"fastmcp: {len(tools)} tools, a packet, a refusal")


asyncio.run(main())
PYTHON
    "$venv/bin/python3" "$folder/fast.py" "$nf" "$(project fast)"
else
    skip fastmcp
fi

if command -v npm > /dev/null && mkdir -p "$folder/node" && cd "$folder/node" &&
    { [ -d node_modules/@modelcontextprotocol/sdk ] && [ -d node_modules/@modelcontextprotocol/inspector ] ||
        npm install --silent --no-audit --no-fund @modelcontextprotocol/sdk @modelcontextprotocol/inspector > /dev/null; }; then
    cat > walk.mjs << 'JAVASCRIPT'
import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [nf, folder] = process.argv.slice(2);
const client = new Client({ name: "walk", version: "1.0.0" });
await client.connect(new StdioClientTransport({ command: nf, args: ["-C", folder, "mcp"] }));
// The client checks each structured content against the tool's output schema.
const { tools } = await client.listTools();
const call = async (name, args) => (await client.callTool({ name, arguments: args })).structuredContent;
const expect = (held, what) => {
  if (!held) throw new Error(JSON.stringify(what));
};
await call("nf_start", { resource: "novel/pride", task: "review" });
const frozen = await call("nf_freeze", { text: readFileSync(`${folder}/job.yaml`, "utf8") });
expect(frozen.ok && frozen.data.new, frozen);
const packet = await call("nf_packet", { gate: "gate/ch01" });
expect(packet.data.packet.startsWith("NF PACKET "), packet);
const member = (name) => new RegExp(`"${name}"\\s*:\\s*"([^"]+)"`).exec(packet.data.packet)[1];
const answer = {
  nf: { job: member("job"), fingerprint: member("fingerprint"), nonce: member("nonce") },
  worker: { provider: "canned", model: "mcp-clients.sh" },
  status: "completed",
  output: { verdict: "reject", evidence: ["Nobody wants anything yet."], confidence: 0.7 },
};
const reply = await call("nf_reply", { text: JSON.stringify(answer) });
expect(reply.ok, reply);
const consumed = await call("nf_consume", { as: "gate/ch01" });
expect(consumed.data.application === "new", consumed);
expect((await call("nf_resume", {})).ok, "resume");
const refused = await client.callTool({ name: "nf_show", arguments: { id: "x-0000" } });
expect(refused.isError && refused.structuredContent.error.kind === "unknown_id", refused);
const { resources } = await client.listResources();
expect(resources.length === 1, resources);
await client.readResource({ uri: resources[0].uri });
await client.close();
console.log(`TypeScript SDK: ${tools.length} tools, the daily path, a refusal, a resource`);
JAVASCRIPT
    node walk.mjs "$nf" "$(project typescript)"
    place=$(project inspector)
    npx --no-install mcp-inspector --cli "$nf" -C "$place" mcp --method tools/list > tools.json
    npx --no-install mcp-inspector --cli "$nf" -C "$place" mcp --method tools/call --tool-name nf_start \
        --tool-arg resource=novel/pride --tool-arg task=review > start.json
    grep -q '"nf_start"' tools.json && grep -q 's-' start.json
    echo "inspector: its command line lists the tools and calls one"
else
    skip "TypeScript SDK and inspector"
fi
echo "all clients that are here went through"
