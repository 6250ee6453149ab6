"""The client of benches/mcp.sh: the same calls one by one and all at once, in turns."""

import json
import statistics
import subprocess
import sys
import threading
import time


class Server:
    def __init__(self, nf):
        self.begun = time.perf_counter()
        self.child = subprocess.Popen([nf, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        client = {"name": "bench", "version": "1"}
        self.ask(0, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
        self.answer()
        self.ready = time.perf_counter() - self.begun

    def ask(self, id, method, params):
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        self.child.stdin.write(json.dumps(message).encode() + b"\n")
        self.child.stdin.flush()

    def step(self, id):
        self.ask(id, "tools/call", {"name": "nf_run_step", "arguments": {"cursor": f"c{id}"}})

    def answer(self):
        message = json.loads(self.child.stdout.readline())
        assert "error" not in message and not message["result"].get("isError"), message
        return message["id"]

    def resident(self):
        with open(f"/proc/{self.child.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))

    def end(self):
        self.child.stdin.close()
        assert self.child.wait() == 0


def one_by_one(nf, calls):
    server = Server(nf)
    begun = time.perf_counter()
    for id in range(1, calls + 1):
        server.step(id)
        server.answer()
    spent = time.perf_counter() - begun
    server.end()
    return calls / spent


def all_at_once(nf, calls):
    server = Server(nf)
    begun = time.perf_counter()
    writer = threading.Thread(target=lambda: [server.step(id) for id in range(1, calls + 1)])
    writer.start()
    seen = {server.answer() for _ in range(calls)}
    spent = time.perf_counter() - begun
    writer.join()
    assert len(seen) == calls
    server.end()
    return calls / spent


def main():
    nf, calls, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    server = Server(nf)
    time.sleep(0.5)
    idle, ready = server.resident(), server.ready
    server.end()
    print(f"idle: {idle / 1024:.1f} MiB resident; {ready * 1000:.1f} ms from spawn to the first answer")
    ratios = []
    for number in range(rounds):
        # A tenth of the calls is enough where each waits for the disk.
        slow, fast = one_by_one(nf, max(calls // 10, 1)), all_at_once(nf, calls)
        ratios.append(fast / slow)
        print(f"round {number + 1}: {slow:7.0f} calls a second one by one, {fast:7.0f} at once: {fast / slow:.1f}")
    ratio = statistics.median(ratios)
    print(f"median ratio {ratio:.1f} (at least 5)")
    sys.exit(0 if ratio >= 5 and idle <= 12 * 1024 else 1)


main()
