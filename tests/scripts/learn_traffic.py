#!/usr/bin/env python3
"""Makes recordings of an API from its OpenAPI document with schemathesis, for `make learn-traffic`.

Writes into OUT, as JSON lines (tests/recording/README.md): NAME.train.jsonl (valid requests with the status of the document, and
invalid ones with 400), and what is kept apart, NAME.valid.jsonl and NAME.invalid.jsonl. No request of the latter two is in the first.
"""

import argparse
import base64
import json
import random
from pathlib import Path
from urllib.parse import urlsplit

import requests
import schemathesis
import schemathesis.openapi
import yaml
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode

BASE = "http://api.test"
# What requests and schemathesis add on their own.
ADDED = {"user-agent", "accept-encoding", "accept", "connection", "x-schemathesis-testcaseid", "content-length"}


def wire(case):
    """The request of a case as an entry of a recording, or None where it cannot be sent."""
    arguments = case.as_transport_kwargs(base_url=BASE)
    taken = {key: arguments[key] for key in ("method", "url", "headers", "params", "data", "json", "cookies", "files")
             if key in arguments}
    try:
        prepared = requests.Request(**taken).prepare()
    except (requests.RequestException, UnicodeError, ValueError):
        return None
    headers = [[name.lower(), value if isinstance(value, str) else value.decode("latin-1")]
               for name, value in prepared.headers.items() if name.lower() not in ADDED]
    if any(not name.isascii() or not value.isascii() or "\n" in value or "\r" in value for name, value in headers):
        return None
    parts = urlsplit(prepared.url)
    request = {"method": prepared.method, "path": (parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
               "host": "api.test", "headers": headers}
    body = prepared.body
    if body:
        body = body.encode() if isinstance(body, str) else bytes(body)
        request["body_base64"] = base64.b64encode(body).decode()
    return request


def draw(operation, mode, count, number):
    """Up to COUNT different requests of an operation."""
    found = {}

    @seed(number)
    @settings(max_examples=count, database=None, deadline=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode))
    def run(case):
        request = wire(case)
        if request is not None:
            found.setdefault(json.dumps(request, sort_keys=True), request)

    run()
    return list(found.values())


def status_of(operation):
    """The first status of success that the document has for an operation."""
    known = [str(status) for status in operation.definition.raw.get("responses", {})]
    return int(next((status for status in known if status.startswith("2") and status.isdigit()), "200"))


def write(path, entries):
    with open(path, "w", encoding="utf-8") as file:
        for request, status in entries:
            entry = {"request": request, "response": {"status": status}, "status": status}
            file.write(json.dumps(entry) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("documents", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=600, help="valid requests of each operation")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for document in arguments.documents:
        # Each document has its own order, whichever others are asked for.
        order = random.Random(f"{arguments.seed}:{document.stem}")
        schema = schemathesis.openapi.from_dict(yaml.safe_load(document.read_text()))
        train, valid, invalid = [], [], []
        for place, result in enumerate(schema.get_all_operations()):
            operation = result.ok()
            status, number = status_of(operation), arguments.seed * 1000 + place
            good = draw(operation, GenerationMode.POSITIVE, arguments.count, number)
            bad = draw(operation, GenerationMode.NEGATIVE, arguments.count // 4, number)
            order.shuffle(good)
            order.shuffle(bad)
            kept = len(good) // 4
            valid += [(request, status) for request in good[:kept]]
            train += [(request, status) for request in good[kept:]]
            # A backend sees invalid requests too, and refuses them.
            half = len(bad) // 2
            invalid += [(request, 400) for request in bad[:half]]
            train += [(request, 400) for request in bad[half:]]
        order.shuffle(train)
        for name, entries in (("train", train), ("valid", valid), ("invalid", invalid)):
            write(arguments.out / f"{document.stem}.{name}.jsonl", entries)
        print(f"{document.stem}: {len(train)} to learn from, {len(valid)} valid and {len(invalid)} invalid kept apart", flush=True)


if __name__ == "__main__":
    main()
