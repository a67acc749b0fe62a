{{- /* The users of the bundled server: (dict "root" $ "hash" SHA-256 of the password). docs/shared-store.md lists the commands. */ -}}
{{- define "palisade.acl" -}}
user default off
user probe on nopass resetkeys resetchannels -@all +ping
user palisade on #{{ .hash }} resetkeys resetchannels ~{ {{- .root.Values.store.prefix -}} }:* {{ with .root.Values.store.previousPrefix }}~{ {{- . -}} }:* {{ end }}-@all {{ include "palisade.redisCommands" . }}
{{ end }}

{{- define "palisade.redisCommands" -}}
+evalsha +eval +script|load +hmget +hget +hset +hdel +hincrby +hscan +hlen +get +set +del +exists +xadd +xrange +xrevrange +xread +xtrim +ping +select +client +config|get
{{- end }}

{{- define "palisade.redisConfig" -}}
port {{ ternary "0" "6379" (ne .Values.redis.tls.secretName "") }}
bind * -::*
{{- if .Values.redis.tls.secretName }}
tls-port 6379
tls-cert-file /etc/redis-tls/tls.crt
tls-key-file /etc/redis-tls/tls.key
tls-ca-cert-file /etc/redis-tls/ca.crt
tls-auth-clients no
{{- end }}
# Who may connect is the access list's to say, and the NetworkPolicy's.
protected-mode no
aclfile /etc/redis-acl/users.acl
dir /data
# An acknowledged change survives a loss of power.
appendonly yes
appendfsync always
save ""
maxmemory {{ .Values.redis.maxMemory }}
maxmemory-policy noeviction
{{- end }}
