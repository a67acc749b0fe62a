"""The Envoy that records: TLS with HTTP/2 and HTTP/1.1 in front of the applications, its tap filter writes each exchange."""

import json
import time
import urllib.request

from services import free_port

# The router adds this header from what it knows of the connection, since a trace does not have the protocol. `pack.py` takes it out.
PROTOCOL = "x-recorded-protocol"
# Response bodies are not kept: they hold the applications' own texts.
BODY_LIMIT = 1 << 20


def certificate(services, work):
    """A key and a certificate that signs itself."""
    key, chain = work / "gateway.key", work / "gateway.pem"
    services.run("openssl", ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=example",
                             "-keyout", key, "-out", chain])
    return key, chain


def bootstrap(work, port, admin, applications):
    """Envoy's configuration. `applications` are the hosts with the ports behind them."""
    key, chain = work / "gateway.key", work / "gateway.pem"
    tap = {
        "@type": "type.googleapis.com/envoy.extensions.filters.http.tap.v3.Tap",
        "record_headers_received_time": True, "record_downstream_connection": True,
        "common_config": {"static_config": {
            "match": {"any_match": True},
            "output_config": {
                "max_buffered_rx_bytes": BODY_LIMIT, "max_buffered_tx_bytes": 0,
                "sinks": [{"format": "JSON_BODY_AS_BYTES", "file_per_tap": {"path_prefix": str(work / "tap" / "request")}}],
            }}}}
    typed = "type.googleapis.com/envoy.extensions."
    manager = {
        "@type": typed + "filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "applications", "codec_type": "AUTO", "use_remote_address": True,
        "normalize_path": True, "merge_slashes": True, "strip_trailing_host_dot": True,
        "path_with_escaped_slashes_action": "KEEP_UNCHANGED", "max_request_headers_kb": 96,
        "http_filters": [
            {"name": "envoy.filters.http.tap", "typed_config": tap},
            {"name": "envoy.filters.http.router", "typed_config": {"@type": typed + "filters.http.router.v3.Router"}}],
        "route_config": {
            "name": "applications",
            "request_headers_to_add": [{"header": {"key": PROTOCOL, "value": "%PROTOCOL%"}}],
            "virtual_hosts": [{
                "name": host, "domains": [host],
                "routes": [{"name": host, "match": {"prefix": "/"}, "route": {
                    "cluster": host, "timeout": "60s", "retry_policy": {"retry_on": "connect-failure", "num_retries": 3}}}],
            } for host in applications]}}
    tls = {
        "@type": typed + "transport_sockets.tls.v3.DownstreamTlsContext",
        "common_tls_context": {
            "alpn_protocols": ["h2", "http/1.1"],
            "tls_certificates": [{"certificate_chain": {"filename": str(chain)}, "private_key": {"filename": str(key)}}]}}
    listener = {
        "name": "applications", "address": address(port), "per_connection_buffer_limit_bytes": 4 * BODY_LIMIT,
        # Every person has an address of their own: `kit.mjs` and `client.py` say it in front of a connection.
        "listener_filters": [{"name": "envoy.filters.listener.proxy_protocol", "typed_config": {
            "@type": typed + "filters.listener.proxy_protocol.v3.ProxyProtocol"}}],
        "filter_chains": [{
            "transport_socket": {"name": "envoy.transport_sockets.tls", "typed_config": tls},
            "filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}]}
    clusters = [{
        "name": host, "connect_timeout": "5s", "type": "STATIC",
        "load_assignment": {"cluster_name": host, "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address(behind)}}]}]},
    } for host, behind in applications.items()]
    return {"node": {"id": "gateway-1", "cluster": "applications"}, "admin": {"address": address(admin)},
            "static_resources": {"listeners": [listener], "clusters": clusters}}


def address(port):
    """A port on the loopback interface."""
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def start(services, work, envoy, applications):
    """Starts Envoy; gives the port of its listener."""
    (work / "tap").mkdir(exist_ok=True)
    certificate(services, work)
    port, admin, file = free_port(), free_port(), work / "envoy.json"
    file.write_text(json.dumps(bootstrap(work, port, admin, applications), indent=1))
    services.start("envoy", [envoy, "-c", file, "--use-dynamic-base-id", "--concurrency", "2", "--log-level", "warning"], port)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{admin}/ready", timeout=2) as answer:
                if answer.status == 200:
                    return port
        except OSError:
            pass
        time.sleep(0.2)
    raise SystemExit(f"Envoy is not ready:\n{services.tail('envoy')}")
