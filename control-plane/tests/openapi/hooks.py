"""What schemathesis has to be told about the admin API."""

import json
import os

import requests
import schemathesis
from schemathesis.specs.openapi import checks

NDJSON = "application/x-ndjson"
SESSION = os.environ["PALISADE_SESSION"]

# After ten wrong keys a minute the next ones are told to wait, which refuses them as well.
checks.AUTH_REJECTION_STATUSES = checks.AUTH_REJECTION_STATUSES | {429}


@schemathesis.serializer(NDJSON)
def lines(ctx, value):
    """The entries of an array, one line each; anything else is one line."""
    entries = value if isinstance(value, list) else [value]
    return {"data": "".join(json.dumps(entry) + "\n" for entry in entries).encode()}


@schemathesis.deserializer(NDJSON)
def entries(ctx, response):
    """The lines of an answer."""
    return [json.loads(line) for line in response.content.splitlines()]


class Elsewhere(requests.adapters.HTTPAdapter):
    """Calls from another address: the one that makes requests up has too many failed logins now and then."""

    def init_poolmanager(self, *arguments, **named):
        super().init_poolmanager(*arguments, source_address=("127.0.0.2", 0), **named)


@schemathesis.hook
def before_call(ctx, case, kwargs):
    """Whoever logs out has a session of their own: the others go on with theirs."""
    if case.operation.definition.raw.get("operationId") != "console.logout":
        return
    if (case.cookies or {}).get("palisade_session") != SESSION:
        return
    session = requests.Session()
    session.mount("http://", Elsewhere())
    login = session.post(
        os.environ["PALISADE_URL"] + "/extensions/svc/extensions/waf/session/_login",
        json={"name": os.environ["PALISADE_OPERATOR"], "password": os.environ["PALISADE_PASSWORD"]},
        timeout=30,
    )
    case.cookies = {**case.cookies, "palisade_session": login.cookies["palisade_session"]}
    case.headers["x-csrf-token"] = login.json()["csrf_token"]
