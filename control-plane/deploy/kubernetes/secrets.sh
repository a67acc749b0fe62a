#!/bin/sh
# Makes the secrets that palisade.yaml names: a password of the store, a token for the gateways, the first admin key.
#
#   control-plane/deploy/kubernetes/secrets.sh                         # for gateways whose ids begin with gateway-
#   NODES='envoy-default-eg-*' GATEWAYS=envoy-gateway-system control-plane/deploy/kubernetes/secrets.sh
#
# NAMESPACE is where palisade.yaml is, GATEWAYS where the pods of the gateways are, PREFIX the prefix of the store's keys. Both namespaces have to
# be there. What is there already stays: a second run stops with an error and changes nothing that is in use.
set -eu
umask 077
NAMESPACE=${NAMESPACE:-palisade}
GATEWAYS=${GATEWAYS:-gateways}
NODES=${NODES:-gateway-*}
PREFIX=${PREFIX:-palisade}

kubectl get namespace "$NAMESPACE" "$GATEWAYS" > /dev/null

random() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The server keeps the SHA-256 of the password; docs/shared-store.md lists the commands.
random > "$folder/password"
hash=$(sha256sum < "$folder/password" | cut -d ' ' -f 1)
cat > "$folder/users.acl" <<ACL
user default off
user probe on nopass resetkeys resetchannels -@all +ping
user palisade on #$hash resetkeys resetchannels ~{$PREFIX}:* -@all +evalsha +eval +script|load +hmget +hget +hset +hdel +hincrby +hscan +hlen +get +set +del +exists +xadd +xrange +xrevrange +xread +xtrim +ping +select +client +config|get
ACL

token=$(random)
printf 'node=%s %s\n' "$NODES" "$token" > "$folder/node-tokens"
cat > "$folder/node-token.yaml" <<SECRET
resources:
  - "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
    name: palisade-node-token
    generic_secret:
      secret: { inline_string: "$token" }
SECRET

printf '{"id": "admin-key_first", "secret": "%s"}' "$(random)" > "$folder/admin-key.json"

kubectl -n "$NAMESPACE" create secret generic palisade-redis \
  --from-file=password="$folder/password" --from-file=users.acl="$folder/users.acl"
kubectl -n "$NAMESPACE" create secret generic palisade-node-tokens --from-file=node-tokens="$folder/node-tokens"
kubectl -n "$GATEWAYS" create secret generic palisade-node-token-default --from-file=node-token.yaml="$folder/node-token.yaml"
kubectl -n "$NAMESPACE" create secret generic palisade-admin-key --from-file=admin-key.json="$folder/admin-key.json"
