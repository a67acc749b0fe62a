#!/usr/bin/env python3
"""Puts exchanges through libmodsecurity 3: JSON lines in, JSON lines out.

The one argument is the file of the configuration. A line of standard input is an exchange as `palisade-replay differential
--dump` prints it, byte strings in base64; a line of standard output has the ids of the rules that matched and were logged,
the message of the rule that reports the scores, and whether the engine asked for the request to be refused (only where
the configuration lets it block). The first line says which engine answers.
"""

import base64
import json
import sys

import libmodsecurity

# The rule whose message is the scores: see `rules.rs`.
SCORES = 999999


def disruptive(transaction):
    return transaction.intervention() is not None


def answer(engine, rules, exchange):
    of = base64.b64decode
    transaction = libmodsecurity.Transaction(engine, rules)
    transaction.process_connection(exchange["client"], 40000, "198.51.100.1", 443)
    transaction.process_uri(of(exchange["uri"]), of(exchange["method"]), exchange["version"].removeprefix("HTTP/"))
    for name, value in exchange["headers"]:
        transaction.add_request_header(of(name), of(value))
    transaction.process_request_headers()
    refused = disruptive(transaction)
    body = of(exchange["body"])
    if body:
        transaction.append_request_body(body)
        refused |= disruptive(transaction)
    transaction.process_request_body()
    refused |= disruptive(transaction)
    for name, value in exchange["response_headers"]:
        transaction.add_response_header(of(name), of(value))
    transaction.process_response_headers(exchange["status"], "HTTP/1.1")
    body = of(exchange["response_body"])
    if body:
        transaction.append_response_body(body)
    transaction.process_response_body()
    transaction.process_logging()
    messages = transaction.get_rule_messages()
    scores = [message.message for message in messages if message.rule_id == SCORES]
    ids = sorted({message.rule_id for message in messages} - {SCORES})
    return {"ids": ids, "scores": scores[-1] if scores else "", "refused": refused}


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: peer.py CONFIGURATION")
    engine = libmodsecurity.ModSecurity()
    engine.set_log_callback(lambda *_: None)
    rules = libmodsecurity.RulesSet()
    if rules.load_from_uri(sys.argv[1]) < 0:
        sys.exit(f"libmodsecurity refuses the configuration: {rules.get_parser_error()}")
    print(json.dumps({"engine": engine.who_am_i()}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(engine, rules, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
