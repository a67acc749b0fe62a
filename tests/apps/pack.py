"""Makes recordings of the traces of Envoy's tap filter: one file of JSON lines for each application, without responses."""

import base64
import collections
import datetime
import gzip
import hashlib
import json
import pathlib
import re

from gateway import PROTOCOL

# What a gateway or its router adds after filters have seen a request.
ADDED = {PROTOCOL, "x-envoy-expected-rq-timeout-ms", "x-envoy-attempt-count", "x-envoy-is-timeout-retry"}
# Static files are at most this share of a recording.
STATIC_SHARE = 0.15
STATIC = re.compile(r"\.(?:js|css|png|gif|svg|jpe?g|ico|woff2?|ttf|map)$|/load\.php$|/load-(?:scripts|styles)\.php$|/exe/(?:js|css|jquery)\.php$")


def endpoint(socket):
    """An address and a port."""
    address = f"[{socket['address']}]" if ":" in socket["address"] else socket["address"]
    return f"{address}:{socket['port_value']}"


class Trace:
    """One exchange as Envoy recorded it."""

    def __init__(self, path):
        buffered = json.loads(path.read_text())["http_buffered_trace"]
        request, self.response = buffered["request"], buffered.get("response", {})
        headers = [(header["key"].lower(), header["value"]) for header in request["headers"]]
        known = dict(headers)
        self.at = request["headers_received_time"]
        self.method, self.path, self.host = known[":method"], known[":path"], known[":authority"]
        self.protocol = known.get(PROTOCOL, "HTTP/1.1")
        self.headers = [pair for pair in headers if not pair[0].startswith(":") and pair[0] not in ADDED]
        body = request.get("body", {})
        self.cut = body.get("truncated", False)
        self.body = base64.b64decode(body.get("as_bytes", ""))
        connection = buffered["downstream_connection"]
        self.peer, self.local = (endpoint(connection[side]["socket_address"]) for side in ("remote_address", "local_address"))
        answer = {header["key"]: header["value"] for header in self.response.get("headers", [])}
        self.status = int(answer.get(":status", 0))
        self.answered = answer.get("content-type")
        self.type = known.get("content-type", "").partition(";")[0].strip().lower()

    def identity(self):
        """Equal for requests that ask for the same."""
        return hashlib.sha256(b"\0".join([self.method.encode(), self.host.encode(), self.path.encode(), self.body])).digest()

    def static(self):
        """Whether it asks for a file that belongs to the application."""
        return self.method == "GET" and bool(STATIC.search(self.path.partition("?")[0]))

    def line(self):
        """The trace in the recording's own format."""
        request = {"method": self.method, "path": self.path, "host": self.host, "scheme": "https", "protocol": self.protocol,
                   "headers": self.headers}
        try:
            text = self.body.decode()
            if text:
                request["body"] = text
        except UnicodeDecodeError:
            request["body_base64"] = base64.b64encode(self.body).decode()
        line = {"at": self.at.rstrip("Z")[:23] + "Z", "peer": self.peer, "local": self.local, "request": request}
        if self.status:
            headers = [["content-type", self.answered]] if self.answered else []
            line |= {"response": {"status": self.status, "headers": headers}, "status": self.status}
        return json.dumps(line, ensure_ascii=False, separators=(",", ":"))


def chosen(traces):
    """Each distinct request once, in the order of time, and no more static files than their share."""
    seen, static, rest = set(), [], []
    for trace in sorted(traces, key=lambda trace: datetime.datetime.fromisoformat(trace.at.replace("Z", "+00:00"))):
        if trace.cut or not trace.status or trace.identity() in seen:
            continue
        seen.add(trace.identity())
        (static if trace.static() else rest).append(trace)
    most = int(len(rest) * STATIC_SHARE / (1 - STATIC_SHARE))
    step = max(1, -(-len(static) // max(1, most)))
    return sorted(rest + static[::step], key=lambda trace: trace.at)


def pack(folder, out, hosts):
    """Writes a recording for each application and prints what is in it; gives the number of requests."""
    names = {host: name for name, host in hosts.items()}
    by_name, unreadable = collections.defaultdict(list), 0
    for path in pathlib.Path(folder).iterdir():
        try:
            trace = Trace(path)
        except (KeyError, ValueError):
            # A connection that ended in the middle of a request.
            unreadable += 1
            continue
        if trace.host in names:
            by_name[names[trace.host]].append(trace)
    out.mkdir(parents=True, exist_ok=True)
    total = 0
    for name in hosts:
        traces = chosen(by_name[name])
        total += len(traces)
        file = out / f"{name}.jsonl.gz"
        with file.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
            for trace in traces:
                packed.write(trace.line().encode() + b"\n")
        show(name, file, traces, len(by_name[name]))
    print(f"{total} distinct requests in all, {unreadable} traces without an end")
    return total


def show(name, file, traces, recorded):
    """Counts of a recording."""
    bodies = sum(1 for trace in traces if trace.body)
    print(f"{name}: {len(traces)} distinct of {recorded} requests, {bodies} with a body, {sum(trace.static() for trace in traces)} static, "
          f"{len({trace.peer.rpartition(':')[0] for trace in traces})} addresses, {file.stat().st_size / 1e6:.2f} MB")
    for what, key in (("methods", "method"), ("statuses", "status"), ("content types", "type")):
        counts = collections.Counter(getattr(trace, key) for trace in traces if key != "type" or trace.body)
        print(f"  {what}: " + ", ".join(f"{value or 'none'} {count}" for value, count in counts.most_common(9)))
