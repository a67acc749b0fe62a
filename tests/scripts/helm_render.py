#!/usr/bin/env python3
"""Renders a chart as `helm template` does, and as an installation or an upgrade does that asks a cluster what it has.

Standard input is JSON: `chart` (a folder), and `renders`, each with `values`, and for a question to a cluster `secrets`: what a
stand-in for Kubernetes on a free loopback port answers for Secrets, by their names. Standard output is a JSON list with `{"text": the
manifests}` or `{"error": why}` for each. With `"lint": true` a render is a run of `helm lint --strict`.

PALISADE_HELM names the folder that fetch_helm.py has made.
"""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.path.insert(0, os.environ["PALISADE_HELM"])
import helm_python as helm  # noqa: E402

NAME = "palisade"
NAMESPACE = "palisade"


def resources(version, kinds):
    listed = [{"name": f"{kind.lower()}s".replace("ys", "ies"), "singularName": "", "namespaced": True, "kind": kind,
               "verbs": ["get", "list", "create"]} for kind in kinds]
    return {"kind": "APIResourceList", "groupVersion": version, "resources": listed}


def cluster(secrets):
    """A stand-in for Kubernetes: it has these Secrets, and nothing else of what the chart makes."""
    kinds = {
        "v1": ["Secret", "Service", "ServiceAccount", "ConfigMap"], "apps/v1": ["Deployment", "StatefulSet"],
        "policy/v1": ["PodDisruptionBudget"], "networking.k8s.io/v1": ["NetworkPolicy"],
    }
    groups = [{"name": version.split("/")[0], "versions": [{"groupVersion": version, "version": "v1"}],
               "preferredVersion": {"groupVersion": version, "version": "v1"}} for version in kinds if "/" in version]
    answers = {
        "/version": {"major": "1", "minor": "34", "gitVersion": "v1.34.0"},
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups},
        **{("/api/" if version == "v1" else "/apis/") + version: resources(version, names) for version, names in kinds.items()},
    }

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self):
            path = self.path.split("?")[0]
            answer = answers.get(path)
            prefix = f"/api/v1/namespaces/{NAMESPACE}/secrets"
            if path == prefix:
                answer = {"kind": "SecretList", "apiVersion": "v1", "metadata": {}, "items": []}
            name = path.removeprefix(prefix + "/")
            if name in secrets:
                metadata = {"name": name, "namespace": NAMESPACE, "labels": {"app.kubernetes.io/managed-by": "Helm"},
                            "annotations": {"meta.helm.sh/release-name": NAME, "meta.helm.sh/release-namespace": NAMESPACE}}
                answer = {"kind": "Secret", "apiVersion": "v1", "metadata": metadata, "data": secrets[name]}
            status = 200 if answer else 404
            missing = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
            body = json.dumps(answer or missing).encode()
            if path == "/openapi/v2":
                # A document without anything, in protobuf: Helm then checks no types.
                status, body = 200, b""
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def asking(chart, render):
    server = cluster(render["secrets"])
    kubeconfig = {
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "users": [{"name": "test", "user": {}}],
    }
    with helm.Config(namespace=NAMESPACE, kubeconfig_content=json.dumps(kubeconfig), storage_driver="memory") as config:
        return config.install(chart, NAME, render["values"], dry_run="server")["manifest"]


def rendered(path, chart, render):
    if render.get("lint"):
        report = helm.lint(path, render["values"], strict=True, namespace=NAMESPACE)
        found = [message for message in report["messages"] if message["severity"] > 1] + report["errors"]
        return {"error": json.dumps(found)} if found else {"text": ""}
    try:
        if "secrets" in render:
            return {"text": asking(chart, render)}
        files = chart.render(render["values"], name=NAME, namespace=NAMESPACE)
        names = sorted(name for name in files if name.endswith(".yaml"))
        return {"text": "\n".join(f"---\n{files[name]}" for name in names)}
    except helm.HelmError as error:
        return {"error": str(error)}


def main():
    wanted = json.load(sys.stdin)
    with helm.Chart.load(wanted["chart"]) as chart:
        json.dump([rendered(wanted["chart"], chart, render) for render in wanted["renders"]], sys.stdout)


if __name__ == "__main__":
    main()
