#!/usr/bin/env python3
"""Reads and verifies a store without nf: the chain of records, the blobs and the receipt marks.

Usage: read_log.py [STORE]     (default: the store in .novelforge.example beside this folder)

Prints one line a record and "N records, M blobs, K receipts verified"; exits 1 at the first thing that is
not as docs/store-format.md says, 2 if it cannot run. Needs one package: pip install blake3
"""

import json
import pathlib
import sys

try:
    from blake3 import blake3
except ImportError as missing:
    print(f"{missing}\nTo install what this program needs: pip install blake3", file=sys.stderr)
    sys.exit(2)

CONTEXT = "novelforge log v1"
JOINT = b',"hash":"'
END = b'"}'


def fail(what):
    print(f"NOT SOUND: {what}", file=sys.stderr)
    sys.exit(1)


def sealed(line, where):
    """The hash that a line (without its newline) ends with, once the bytes before are found to have it."""
    size = len(JOINT) + 64 + len(END)
    body, seal = line[:-size], line[-size:]
    if not (seal.startswith(JOINT) and seal.endswith(END)):
        fail(f"{where}: the line does not end with its hash")
    stated = seal[len(JOINT):-len(END)].decode("ascii", "replace")
    if blake3(body, derive_key_context=CONTEXT).hexdigest() != stated:
        fail(f"{where}: the bytes have another hash than the line states")
    return stated


def records(store):
    """Every record in order; fails where the chain does not hold."""
    info = (store / "store.json").read_bytes()
    store_id = json.loads(info)["store_id"]
    before = blake3(info).hexdigest()
    number, segment, closed = 0, 0, False
    for path in sorted((store / "log").glob("[0-9]*.jsonl")):
        segment += 1
        if path.name != f"{segment:08}.jsonl" or (segment > 1 and not closed):
            fail(f"{path.name}: segment {segment} should stand here")
        running = blake3()
        closed = False
        data = path.read_bytes()
        if not data.endswith(b"\n"):
            fail(f"{path.name}: the last line is not whole")
        for index, line in enumerate(data.split(b"\n")[:-1]):
            where = f"{path.name} line {index + 1}"
            if closed:
                fail(f"{where}: a line after the closing record")
            stated = sealed(line, where)
            record = json.loads(line)
            number += 1
            if record["seq"] != number:
                fail(f"{where}: number {record['seq']} where {number} belongs")
            if record["prev"] != before:
                fail(f"{where}: it does not follow the record before")
            first, last = record["events"][0], record["events"][-1]
            opens = first["type"] == "segment.opened"
            if opens != (index == 0):
                fail(f"{where}: the first record of a segment, and no other, opens it")
            if opens and (first["segment"], first["store"], first["last"]) != (segment, store_id, before):
                fail(f"{where}: the segment belongs to another place or store")
            if last["type"] == "segment.closed":
                if last["hash"] != running.hexdigest():
                    fail(f"{where}: the segment's bytes have another hash")
                closed = True
            running.update(line + b"\n")
            before = stated
            yield record


def cited(event):
    """The blobs that an event rests on."""
    kind = event["type"]
    if kind == "job.frozen":
        return [event["job"]["blob"]] + [place["hash"] for place in event["job"]["places"]]
    if kind == "result.stored":
        return [event["result"]["blob"]]
    if kind == "conflict.refused" and event.get("value"):
        return [event["value"]]
    if kind == "event.received" and "blob" in event["event"].get("payload", {}):
        return [event["event"]["payload"]["blob"]]
    if kind == "checkpoint.saved" and "blob" in event["checkpoint"]["bindings"]:
        return [event["checkpoint"]["bindings"]["blob"]]
    return []


def mark_name(source, consumer):
    """A receipt mark's name: the hash of both parts, each after its length as eight bytes."""
    parts = [part.encode() for part in (source, consumer)]
    return blake3(b"".join(len(part).to_bytes(8, "big") + part for part in parts)).hexdigest()


def main():
    here = pathlib.Path(__file__).resolve().parent
    store = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here.parent / ".novelforge.example"
    blobs, receipts, count = set(), 0, 0
    for record in records(store):
        count += 1
        print(record["seq"], record["at"], record["cmd"], " ".join(event["type"] for event in record["events"]))
        for event in record["events"]:
            blobs.update(cited(event))
            if event["type"] == "receipt.recorded":
                receipt = event["receipt"]
                mark = store / "receipts" / mark_name(receipt["source"], receipt["consumer"])
                if not mark.is_file() or json.loads(mark.read_bytes()) != receipt:
                    fail(f"record {record['seq']}: the mark of receipt {receipt['id']} is missing or another")
                receipts += 1
    if count == 0:
        fail("there is no record")
    for name in sorted(blobs):
        path = store / "blobs" / name[:2] / name
        if not path.is_file():
            fail(f"blob {name} is missing")
        if blake3(path.read_bytes()).hexdigest() != name:
            fail(f"blob {name} has another hash")
    print(f"{count} records, {len(blobs)} blobs, {receipts} receipts verified")


main()
