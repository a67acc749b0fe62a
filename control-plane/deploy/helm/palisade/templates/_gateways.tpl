{{- /* The cluster by which a gateway reaches the control planes, as in envoy/istio/envoyfilter.yaml. */ -}}
{{- define "palisade.cluster" -}}
# The name is fixed: the filter itself reports events and learns of bans by it.
name: palisade-control-plane
type: STRICT_DNS
connect_timeout: 5s
# A worker takes what has come between requests: this much of a long list of bans at once.
per_connection_buffer_limit_bytes: 32768
typed_extension_protocol_options:
  envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
    "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
    explicit_http_config:
      # A control plane that vanished is noticed within half a minute; the next connection goes to another one.
      http2_protocol_options: { connection_keepalive: { interval: 20s, timeout: 10s } }
    # Every request to the control plane carries the token: Envoy's own stream as well as those of the filters.
    http_filters:
      - name: envoy.filters.http.credential_injector
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.http.credential_injector.v3.CredentialInjector
          overwrite: true
          credential:
            name: envoy.http.injected_credentials.generic
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.http.injected_credentials.generic.v3.Generic
              credential:
                name: palisade-node-token
                sds_config:
                  path_config_source: { path: /etc/palisade/node-token.yaml }
                  resource_api_version: V3
              header_value_prefix: "Bearer "
      - name: envoy.filters.http.upstream_codec
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec
{{- if .Values.tls.xds.secretName }}
transport_socket:
  name: envoy.transport_sockets.tls
  typed_config:
    "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
    sni: {{ include "palisade.xdsHost" . }}
    common_tls_context:
      alpn_protocols: [h2]
      validation_context:
        trusted_ca: { filename: /etc/palisade/control-plane-ca.pem }
        match_typed_subject_alt_names: [{ san_type: DNS, matcher: { exact: {{ include "palisade.xdsHost" . }} } }]
{{- end }}
load_assignment:
  cluster_name: palisade-control-plane
  endpoints:
    - lb_endpoints:
        - endpoint:
            address:
              socket_address: { address: {{ include "palisade.xdsHost" . }}, port_value: 18000 }
{{- end }}

{{- define "palisade.filter" -}}
name: palisade.preset
config_discovery:
  type_urls: [type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm]
  config_source:
    resource_api_version: V3
    # The listener waits for its filter: without it no client should be served.
    initial_fetch_timeout: 0s
    api_config_source:
      api_type: DELTA_GRPC
      transport_api_version: V3
      set_node_on_first_message_only: true
      grpc_services: [{ envoy_grpc: { cluster_name: palisade-control-plane } }]
{{- end }}

{{- /* Copies the modules of the image to where the control plane says that they are. */ -}}
{{- define "palisade.filtersContainer" -}}
name: palisade-filters
image: {{ include "palisade.image" . }}
command: [cp, -r, /usr/share/palisade/filters/., /filters]
resources:
  requests: { cpu: 50m, memory: 32Mi }
  limits: { memory: 128Mi }
volumeMounts:
  - { name: palisade-filters, mountPath: /filters }
securityContext: {{- include "palisade.containerSecurity" . | nindent 2 }}
{{- end }}
