#!/usr/bin/env python3
"""Compares the API contract check with requests that schemathesis makes: right ones and wrong ones, for many documents.

Each request is judged by Palisade (the program --judge: a line of JSON in, a line out) and, where the judgement is not the expected one,
by openapi-core. What differs from the list of explained disagreements is printed, and ends the program with 1.
"""

import argparse
import collections
import json
import random
import subprocess
import sys
import warnings
from pathlib import Path

import hypothesis
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from openapi_core import OpenAPI
from openapi_core.contrib.requests import RequestsOpenAPIRequest
from schemathesis import GenerationMode

warnings.simplefilter("ignore")
HOST = "http://palisade.test"
UNRECORDED = ("user-agent", "accept", "accept-encoding", "connection", "x-schemathesis-testcaseid", "content-length")


def operations(document):
    """The operations that schemathesis can read."""
    schema = schemathesis.openapi.from_dict(document)
    for result in schema.get_all_operations():
        try:
            yield result.ok()
        except Exception:  # noqa: BLE001 - an operation that the tool itself refuses
            continue


def examples(operation, mode, count, seed):
    """Requests of an operation; none where the tool can make none of the kind."""
    made = []
    try:
        strategy = operation.as_strategy(generation_mode=mode)

        @hypothesis.seed(seed)
        @settings(max_examples=count, database=None, deadline=None, phases=[Phase.generate],
                  suppress_health_check=list(HealthCheck))
        @hypothesis.given(case=strategy)
        def collect(case):
            made.append(case)

        collect()
    except Exception:  # noqa: BLE001 - unsatisfiable, no body to negate and the like
        pass
    return made


def prepared(case):
    """The request as it is sent, or none."""
    try:
        arguments = case.as_transport_kwargs(base_url=HOST)
        allowed = ("method", "url", "params", "headers", "data", "json", "files", "cookies", "auth")
        return requests.Request(**{k: v for k, v in arguments.items() if k in allowed}).prepare()
    except Exception:  # noqa: BLE001 - what cannot be sent
        return None


def cause(case):
    """What is wrong with a wrong request: parts and what was done to them."""
    meta = getattr(case, "meta", None)
    if meta is None:
        return ""
    wrong = [str(getattr(part, "value", part)) for part, info in meta.components.items()
             if getattr(info, "mode", None) == GenerationMode.NEGATIVE]
    phase = getattr(meta.phase, "data", None)
    told = getattr(phase, "description", None) or ""
    return f"{'+'.join(sorted(wrong))}: {told}"


def core_opinion(spec, request):
    """Whether openapi-core takes a request: `taken`, `refused`, or why it has no opinion."""
    try:
        errors = list(spec.iter_request_errors(RequestsOpenAPIRequest(request)))
        return "refused" if errors else "taken"
    except Exception as error:  # noqa: BLE001
        return f"no opinion ({type(error).__name__})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--judge", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True, help="where the documents are")
    parser.add_argument("--documents", type=Path, help="their names, one in each line; default: all of the folder")
    parser.add_argument("--explained", type=Path, required=True, help="disagreements with their reasons")
    parser.add_argument("--operations", type=int, default=4, help="of each document, at most")
    parser.add_argument("--count", type=int, default=3, help="requests of each kind for an operation")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="writes all requests and judgements there")
    parser.add_argument("--record", type=Path, help="writes requests there that are judged as expected, for a test")
    arguments = parser.parse_args()
    if arguments.documents:
        names = [line for line in arguments.documents.read_text().split("\n") if line and not line.startswith("#")]
    else:
        names = sorted(file.name for file in arguments.folder.glob("*.json"))
    explained = json.loads(arguments.explained.read_text())
    judge = subprocess.Popen([arguments.judge.resolve()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    log = arguments.out.open("w") if arguments.out else None
    recorded = {}
    counts = collections.Counter()
    open_questions = collections.Counter()
    samples = {}
    for name in names:
        file = arguments.folder / name
        document = json.loads(file.read_text())
        document.pop("servers", None)
        for item in document.get("paths", {}).values():
            if isinstance(item, dict):
                item.pop("servers", None)
                for operation in item.values():
                    if isinstance(operation, dict):
                        operation.pop("servers", None)
        # What asks for a credential is no part of the check.
        document.pop("security", None)
        try:
            spec = OpenAPI.from_dict({**document, "servers": [{"url": HOST}]})
        except Exception:  # noqa: BLE001 - it refuses documents that others take
            spec = None
        judge.stdin.write(json.dumps({"document": json.dumps(document)}) + "\n")
        all_operations = sorted(operations(document), key=lambda operation: (operation.path, operation.method))
        random.Random(arguments.seed).shuffle(all_operations)
        for operation in all_operations[: arguments.operations]:
            label = f"{operation.method.upper()} {operation.path}"
            for mode, expected in ((GenerationMode.POSITIVE, "taken"), (GenerationMode.NEGATIVE, "refused")):
                for case in examples(operation, mode, arguments.count, arguments.seed):
                    if expected == "refused" and cause(case).startswith(":"):
                        counts["wrong in nothing"] += 1
                        continue
                    request = prepared(case)
                    if request is None:
                        counts["not sendable"] += 1
                        continue
                    body = request.body or b""
                    body = body.encode() if isinstance(body, str) else body
                    if not isinstance(body, bytes):
                        body = b"".join(body)
                    headers = {k.lower(): v.decode("latin1") if isinstance(v, bytes) else v for k, v in request.headers.items()}
                    line = {"method": request.method, "target": request.url[len(HOST):] or "/", "headers": headers, "body": body.hex()}
                    judge.stdin.write(json.dumps(line) + "\n")
                    judge.stdin.flush()
                    found = json.loads(judge.stdout.readline())
                    said = "refused" if found["violations"] else "taken"
                    counts[(expected, said)] += 1
                    record = {"document": name, "operation": label, "expected": expected, "said": said, "cause": cause(case),
                              "request": line, "found": found}
                    if said != expected:
                        record["core"] = core_opinion(spec, request) if spec else "no opinion (it refuses the document)"
                        reason = next((entry["reason"] for entry in explained if matches(entry, record)), None)
                        record["reason"] = reason
                        if reason is None:
                            kinds = ",".join(sorted({one.split(" ")[0] for one in found["violations"]}))
                            key = (name, label, expected, record["core"], kinds, record["cause"])
                            open_questions[key] += 1
                            samples.setdefault(key, line | {"found": found})
                        else:
                            counts[f"explained: {reason}"] += 1
                    elif len(body) < 400 and len(line["target"]) < 400:
                        kept = {name: value for name, value in headers.items() if name not in UNRECORDED}
                        entry = {"document": name, "expected": expected, "cause": record["cause"], "request": line | {"headers": kept}}
                        recorded[json.dumps(entry, sort_keys=True)] = None
                    if log:
                        log.write(json.dumps(record) + "\n")
    if arguments.record:
        arguments.record.write_text("".join(f"{entry}\n" for entry in recorded))
    judge.stdin.close()
    judge.wait()
    for key, count in sorted(counts.items(), key=str):
        print(count, key)
    for key, count in sorted(open_questions.items()):
        print(count, *key, json.dumps(samples[key])[:700], sep="\n    ")
    print(f"{len(names)} documents, {sum(open_questions.values())} disagreements that the list does not explain")
    sys.exit(1 if open_questions else 0)


def matches(entry, record):
    """An entry names fields of a record, and texts that are in them; a field with a 2 behind it has another text to be in it."""
    def has(field, text):
        field = field.rstrip("2")
        value = record["request"] if field == "request" else record.get(field)
        return text in (value if isinstance(value, str) else json.dumps(value))
    return all(has(field, text) for field, text in entry.items() if field != "reason")


if __name__ == "__main__":
    main()
