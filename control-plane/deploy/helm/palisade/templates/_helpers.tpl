{{- define "palisade.fullname" -}}
{{- if contains "palisade" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-palisade" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{- define "palisade.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* What selects the pods of a component: (dict "root" $ "component" "...") */ -}}
{{- define "palisade.selector" -}}
app.kubernetes.io/name: palisade
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "palisade.labels" -}}
{{ include "palisade.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}

{{- /* A value of a Secret that is there, or a fresh one: (dict "root" $ "secret" "..." "key" "..." "fresh" "...") */ -}}
{{- define "palisade.kept" -}}
{{- $old := lookup "v1" "Secret" .root.Release.Namespace .secret -}}
{{- if and $old $old.data (hasKey $old.data .key) }}{{ index $old.data .key | b64dec }}{{ else }}{{ .fresh }}{{ end -}}
{{- end }}

{{- define "palisade.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "palisade.containerSecurity" -}}
runAsNonRoot: true
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- /* Where the store is: the URL has no password. */ -}}
{{- define "palisade.storeUrl" -}}
{{- $options := list (printf "prefix=%s" .Values.store.prefix) (printf "timeout_millis=%d" (int .Values.store.timeoutMillis)) -}}
{{- if eq .Values.store.type "bundled" -}}
{{- $options = append $options "password_file=/etc/palisade/redis/password" -}}
{{- if .Values.redis.tls.secretName }}{{ $options = append $options "ca_file=/etc/palisade/redis-ca/ca.crt" }}{{ end -}}
{{ ternary "rediss" "redis" (ne .Values.redis.tls.secretName "") }}://palisade@{{ include "palisade.fullname" . }}-redis:6379?{{ join "&" $options }}
{{- else -}}
{{- $external := .Values.store.external -}}
{{- if $external.passwordSecret }}{{ $options = append $options "password_file=/etc/palisade/redis/password" }}{{ end -}}
{{- if $external.caSecret }}{{ $options = append $options "ca_file=/etc/palisade/redis-ca/ca.crt" }}{{ end -}}
{{ $external.url }}{{ ternary "&" "?" (contains "?" $external.url) }}{{ join "&" $options }}
{{- end -}}
{{- end }}

{{- define "palisade.dns" -}}
to:
  - namespaceSelector:
      matchLabels: { kubernetes.io/metadata.name: {{ .Values.networkPolicy.dns.namespace }} }
    podSelector:
      matchLabels: {{ toJson .Values.networkPolicy.dns.podLabels }}
ports:
  - { port: 53, protocol: UDP }
  - { port: 53, protocol: TCP }
{{- end }}

{{- /* The address of xDS for gateways. */ -}}
{{- define "palisade.xdsHost" -}}
{{ include "palisade.fullname" . }}-xds.{{ .Release.Namespace }}.svc.cluster.local
{{- end }}

{{- /* Values that do not fit together, with a message that says what to do. */ -}}
{{- define "palisade.check" -}}
{{- $store := .Values.store -}}
{{- if and (eq $store.type "embedded") (ne (int .Values.replicas) 1) }}{{ fail "store.type embedded is a file with one writer: set replicas to 1, or take a shared store" }}{{ end -}}
{{- if ne $store.type "external" -}}
{{- if or $store.external.url $store.external.urlSecret }}{{ fail (printf "store.external is for store.type external, and store.type is %s: take away store.external.url and store.external.urlSecret, or change the type" $store.type) }}{{ end -}}
{{- else -}}
{{- if and (not $store.external.url) (not $store.external.urlSecret) }}{{ fail "store.type external needs store.external.url or store.external.urlSecret" }}{{ end -}}
{{- if and .Values.networkPolicy.enabled (not $store.external.peers) }}{{ fail "store.type external needs store.external.peers: the NetworkPolicy lets through nothing else" }}{{ end -}}
{{- end -}}
{{- if and .Values.tls.xds.clientCaSecret (not .Values.tls.xds.secretName) }}{{ fail "tls.xds.clientCaSecret needs tls.xds.secretName" }}{{ end -}}
{{- range .Values.gateways -}}
{{- if and $.Values.tls.xds.secretName (ne .kind "other") (not $.Values.tls.xds.ca) }}{{ fail (printf "gateway %s needs tls.xds.ca to check the control plane's certificate" .name) }}{{ end -}}
{{- if and $.Values.tls.xds.clientCaSecret (ne .kind "other") }}{{ fail (printf "gateway %s: client certificates are for gateways of kind other, whose cluster is yours" .name) }}{{ end -}}
{{- if and (eq .kind "istio") (not .selector) }}{{ fail (printf "gateway %s of kind istio needs selector" .name) }}{{ end -}}
{{- if and (eq .kind "envoy-gateway") (not .gateway) }}{{ fail (printf "gateway %s of kind envoy-gateway needs gateway" .name) }}{{ end -}}
{{- if and .derive (ne .kind "other") }}{{ fail (printf "gateway %s: derived tokens are for gateways with fixed names, of kind other" .name) }}{{ end -}}
{{- end -}}
{{- if and .Values.tls.certManager.enabled (not (or .Values.tls.admin.secretName .Values.tls.xds.secretName)) }}{{ fail "tls.certManager.enabled needs tls.admin.secretName or tls.xds.secretName" }}{{ end -}}
{{- end }}
