#!/usr/bin/env python3
"""Walks the daily path through `nf mcp` with the Python client of MCP: start, freeze, packet, reply, consume,
resume. The reviewer is a canned one; in real work the packet goes to a separate agent or person.

    pip install mcp
    examples/mcp_daily_path.py NF FOLDER [session|auto|legacy|2026-07-28]

NF is the program, FOLDER a project with a store and with job.yaml, a job that is judged by a verdict (accept or
reject), evidence and a confidence. With `session` the client is the plain session and its handshake; with any
other word it is the one that finds out which revision the server speaks.
"""

import asyncio
import json
import re
import sys
from pathlib import Path

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


def answer_of(packet: str) -> str:
    """What a reviewer sends back: the packet's own identity, and an answer."""

    def member(name: str) -> str:
        found = re.search(rf'"{name}"\s*:\s*"([^"]+)"', packet)
        assert found, f"{name} is not in the packet"
        return found.group(1)

    return json.dumps(
        {
            "nf": {name: member(name) for name in ("job", "fingerprint", "nonce")},
            "worker": {"provider": "canned", "model": "mcp_daily_path.py"},
            "status": "completed",
            "output": {"verdict": "reject", "evidence": ["Nobody wants anything yet."], "confidence": 0.7},
        }
    )


async def walk(client, job: str) -> None:
    async def call(name: str, **arguments):
        result = await client.call_tool(name, arguments)
        document = result.model_dump(by_alias=True)["structuredContent"]
        assert not result.model_dump(by_alias=True).get("isError"), (name, document)
        print(name, document.get("record", {}).get("seq", "-"))
        return document["data"]

    tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools][:3] == ["nf_start", "nf_freeze", "nf_packet"], tools[:3]
    session = (await call("nf_start", resource="novel/pride", task="review"))["session"]
    frozen = (await call("nf_freeze", text=job, session=session))["job"]
    packet = await call("nf_packet", what=frozen, gate="gate/ch01", session=session)
    result = (await call("nf_reply", text=answer_of(packet["packet"])))["result"]
    receipt = await call("nf_consume", source=result, **{"as": "gate/ch01"})
    assert receipt["outcome"]["route"] == "repair.story", "a rejection is a valid answer that names its repair"
    again = await call("nf_consume", source=result, **{"as": "gate/ch01"})
    assert receipt["receipt"] == again["receipt"], "a second time changes nothing"
    await call("nf_resume", session=session)
    # A refusal is an answer too: the same code, kind and next step as on the command line.
    refused = (await client.call_tool("nf_show", {"id": "s-0000"})).model_dump(by_alias=True)
    error = refused["structuredContent"]["error"]
    assert refused["isError"] and (error["code"], error["kind"]) == (1, "unknown_id"), refused
    resources = (await client.list_resources()).resources
    assert str(resources[0].uri) == f"nf://result/{result}", resources
    read = await client.read_resource(resources[0].uri)
    assert json.loads(read.contents[0].text)["object"]["id"] == result
    await call("nf_verify")


async def main() -> None:
    nf, folder, mode = sys.argv[1], Path(sys.argv[2]), (sys.argv + ["session"])[3]
    job = (folder / "job.yaml").read_text()
    server = StdioServerParameters(command=nf, args=["-C", str(folder), "mcp"])
    if mode == "session":
        async with stdio_client(server) as (read, write), ClientSession(read, write) as client:
            await client.initialize()
            await walk(client, job)
    else:
        from mcp.client import Client

        async with Client(stdio_client(server), mode=mode) as client:
            print("revision", client.protocol_version)
            await walk(client, job)
    print("the daily path is done")


asyncio.run(main())
