#!/usr/bin/env python3
"""Recomputes nf's fingerprints, job digests and job ids without nf.

Usage: fingerprint.py [FILE ...]     (default: the vectors in tests/fixtures/fingerprint)

Each file is one JSON object: name, question, permissions, execution, forbidden_keys, allow_evidence, and
what must come out of them: canonical, fingerprint, job_digest, job_id. Prints "N passed, M failed" and
exits 1 if any failed, 2 if it cannot run. Needs two packages: pip install blake3 rfc8785
"""

import json
import pathlib
import sys

try:
    import blake3
    import rfc8785
except ImportError as missing:
    print(f"{missing}\nTo install what this program needs: pip install blake3 rfc8785", file=sys.stderr)
    sys.exit(2)

MEMBERS = ("context", "contract", "evidence", "input", "kind", "output", "rubric", "subject", "verdict")
BASE_32 = "0123456789abcdefghjkmnpqrstvwxyz"


def no_duplicates(pairs):
    """An object of a vector; two members of one name would make the vector mean two things."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object has a key twice")
    return members


def job_id(digest):
    """The first 60 bits of a digest, five to a character."""
    bits = int.from_bytes(digest[:8], "big") >> 4
    return "j-" + "".join(BASE_32[bits >> shift & 31] for shift in range(55, -1, -5))


def recompute(vector):
    """What must come out of a vector's members."""
    question = vector["question"]
    if sorted(question) != sorted(MEMBERS):
        raise ValueError(f"the members of the question must be {', '.join(MEMBERS)}")
    canonical = rfc8785.dumps({**question, "v": 1})
    fingerprint = "nf1:" + blake3.blake3(canonical).hexdigest()
    governed = ("permissions", "execution", "forbidden_keys", "allow_evidence")
    job = {"fingerprint": fingerprint, **{name: vector[name] for name in governed}}
    digest = blake3.blake3(rfc8785.dumps(job)).digest()
    return {
        "canonical": canonical.decode("utf-8"),
        "fingerprint": fingerprint,
        "job_digest": "nfj1:" + digest.hex(),
        "job_id": job_id(digest),
    }


def check(path):
    """The complaints about one file; none if it holds."""
    try:
        vector = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=no_duplicates)
        computed = recompute(vector)
    except (OSError, ValueError, KeyError, TypeError) as error:
        return [f"{path}: {type(error).__name__}: {error}"]
    return [
        f"{path}: {name}: want {vector.get(name)!r}, got {value!r}"
        for name, value in computed.items()
        if vector.get(name) != value
    ]


def main(arguments):
    """Checks every file and says how many held."""
    home = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "fingerprint"
    paths = [pathlib.Path(argument) for argument in arguments] or sorted(home.glob("*.json"))
    if not paths:
        print(f"there are no vectors in {home}", file=sys.stderr)
        return 2
    complaints = [found for found in map(check, paths) if found]
    for line in (line for found in complaints for line in found):
        print(line, file=sys.stderr)
    print(f"{len(paths) - len(complaints)} passed, {len(complaints)} failed")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
