{{- /* The pod of a control plane, without its volume `data`. */ -}}
{{- define "palisade.pod" -}}
metadata:
  labels: {{- include "palisade.labels" (dict "root" $ "component" "control-plane") | nindent 4 }}
  {{- with .Values.podAnnotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "palisade.fullname" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  # Requests under way and events have their time, see `palisade serve --help`.
  terminationGracePeriodSeconds: 30
  securityContext: {{- include "palisade.podSecurity" 65532 | nindent 4 }}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- else }}
  topologySpreadConstraints:
    {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels: {{- include "palisade.selector" (dict "root" $ "component" "control-plane") | nindent 10 }}
    {{- end }}
  {{- end }}
  containers:
    - name: palisade
      image: {{ include "palisade.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [serve]
      env:
        {{- if eq .Values.store.type "embedded" }}
        {{- with .Values.store.embedded.maxMib }}
        - { name: PALISADE_MAX_STORE_MIB, value: {{ int . | quote }} }
        {{- end }}
        {{- else if and (eq .Values.store.type "external") .Values.store.external.urlSecret }}
        - name: PALISADE_STORE
          valueFrom:
            secretKeyRef: {{ toJson .Values.store.external.urlSecret }}
        {{- else }}
        - { name: PALISADE_STORE, value: {{ include "palisade.storeUrl" . | quote }} }
        {{- end }}
        - { name: PALISADE_FIRST_ADMIN_KEY_FILE, value: /etc/palisade/admin-key/admin-key.json }
        - { name: PALISADE_NODE_TOKEN_FILE, value: /etc/palisade/node-tokens/node-tokens }
        {{- if .Values.tls.admin.secretName }}
        - { name: PALISADE_TLS_CERT, value: /etc/palisade/tls/tls.crt }
        - { name: PALISADE_TLS_KEY, value: /etc/palisade/tls/tls.key }
        {{- end }}
        {{- if .Values.tls.xds.secretName }}
        - { name: PALISADE_XDS_TLS_CERT, value: /etc/palisade/xds-tls/tls.crt }
        - { name: PALISADE_XDS_TLS_KEY, value: /etc/palisade/xds-tls/tls.key }
        {{- end }}
        {{- if .Values.tls.xds.clientCaSecret }}
        - { name: PALISADE_XDS_CLIENT_CA, value: /etc/palisade/xds-client-ca/ca.crt }
        {{- end }}
        {{- with .Values.admin.hosts }}
        - { name: PALISADE_ADMIN_HOST, value: {{ join "," . | quote }} }
        {{- end }}
        - { name: PALISADE_REPLAY_MAX_MEMORY_MIB, value: {{ int .Values.replay.maxMemoryMib | quote }} }
        {{- if .Values.events.stdout }}
        - { name: PALISADE_EVENTS_STDOUT, value: "true" }
        {{- end }}
        {{- with .Values.events.webhook }}
        - { name: PALISADE_EVENTS_WEBHOOK, value: {{ . | quote }} }
        {{- end }}
        {{- if .Values.events.webhookHeadersSecret }}
        - { name: PALISADE_EVENTS_WEBHOOK_HEADERS_FILE, value: /etc/palisade/webhook/headers }
        {{- end }}
        {{- with .Values.outboundAllow }}
        - { name: PALISADE_OUTBOUND_ALLOW, value: {{ join "," . | quote }} }
        {{- end }}
        {{- with .Values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        - { name: admin, containerPort: 8900 }
        - { name: xds, containerPort: 18000 }
      {{- $scheme := ternary "HTTPS" "HTTP" (ne .Values.tls.admin.secretName "") }}
      # Ready once the store is read and the first snapshot is made.
      startupProbe:
        httpGet: { path: /readyz, port: admin, scheme: {{ $scheme }} }
        periodSeconds: 2
        timeoutSeconds: 5
        failureThreshold: 90
      # Not /readyz: without the store every control plane would be taken out of service at once. Each goes on serving what it knows,
      # also to gateways that start then.
      readinessProbe:
        httpGet: { path: /healthz, port: admin, scheme: {{ $scheme }} }
        periodSeconds: 5
        timeoutSeconds: 5
      livenessProbe:
        httpGet: { path: /healthz, port: admin, scheme: {{ $scheme }} }
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      resources: {{- toYaml .Values.resources | nindent 8 }}
      securityContext: {{- include "palisade.containerSecurity" . | nindent 8 }}
      volumeMounts: {{- include "palisade.mounts" . | nindent 8 }}
{{- end }}

{{- define "palisade.mounts" -}}
- { name: data, mountPath: /var/lib/palisade }
- { name: admin-key, mountPath: /etc/palisade/admin-key, readOnly: true }
- { name: node-tokens, mountPath: /etc/palisade/node-tokens, readOnly: true }
{{- range include "palisade.files" . | fromYamlArray }}
- { name: {{ .name }}, mountPath: {{ .mountPath }}, readOnly: true }
{{- end }}
{{- end }}

{{- /* Files from Secrets that some values ask for: a volume, its Secret, its key and the file's name, and where. */ -}}
{{- define "palisade.files" -}}
{{- $all := list -}}
{{- if eq .Values.store.type "bundled" -}}
{{- $all = append $all (dict "name" "redis" "secret" (printf "%s-redis" (include "palisade.fullname" .)) "key" "password" "path" "password" "mountPath" "/etc/palisade/redis") -}}
{{- with .Values.redis.tls.secretName }}{{ $all = append $all (dict "name" "redis-ca" "secret" . "key" "ca.crt" "path" "ca.crt" "mountPath" "/etc/palisade/redis-ca") }}{{ end -}}
{{- else if eq .Values.store.type "external" -}}
{{- with .Values.store.external.passwordSecret }}{{ $all = append $all (dict "name" "redis" "secret" .name "key" .key "path" "password" "mountPath" "/etc/palisade/redis") }}{{ end -}}
{{- with .Values.store.external.caSecret }}{{ $all = append $all (dict "name" "redis-ca" "secret" .name "key" .key "path" "ca.crt" "mountPath" "/etc/palisade/redis-ca") }}{{ end -}}
{{- end -}}
{{- with .Values.tls.admin.secretName }}{{ $all = append $all (dict "name" "tls" "secret" . "mountPath" "/etc/palisade/tls") }}{{ end -}}
{{- with .Values.tls.xds.secretName }}{{ $all = append $all (dict "name" "xds-tls" "secret" . "mountPath" "/etc/palisade/xds-tls") }}{{ end -}}
{{- with .Values.tls.xds.clientCaSecret }}{{ $all = append $all (dict "name" "xds-client-ca" "secret" . "key" "ca.crt" "path" "ca.crt" "mountPath" "/etc/palisade/xds-client-ca") }}{{ end -}}
{{- with .Values.events.webhookHeadersSecret }}{{ $all = append $all (dict "name" "webhook" "secret" .name "key" .key "path" "headers" "mountPath" "/etc/palisade/webhook") }}{{ end -}}
{{ toYaml $all }}
{{- end }}

{{- define "palisade.volumes" -}}
- name: admin-key
  secret: { secretName: {{ include "palisade.fullname" . }}-admin-key, defaultMode: 0440 }
- name: node-tokens
  secret:
    secretName: {{ include "palisade.fullname" . }}-node-tokens
    defaultMode: 0440
    items: [{ key: node-tokens, path: node-tokens }]
{{- range include "palisade.files" . | fromYamlArray }}
- name: {{ .name }}
  secret:
    secretName: {{ .secret }}
    defaultMode: 0440
    {{- if .key }}
    items: [{ key: {{ .key }}, path: {{ .path }} }]
    {{- end }}
{{- end }}
{{- end }}
