# The control plane with the filters, the core rule set and the program that replays recorded traffic in one image.
#
#   docker build -t palisade .
#   docker run --read-only -v palisade-data:/var/lib/palisade -p 127.0.0.1:8900:8900 -p 127.0.0.1:18000:18000 palisade
#
# Without certificates (PALISADE_TLS_CERT, PALISADE_XDS_TLS_CERT) both ports speak without TLS: publish them on loopback or on a
# network of their own. The first start makes
# a token for gateways, in node-tokens on the volume; PALISADE_NODE_TOKEN_CREATE says whose it is, by default anybody's who has
# it. A token for each gateway: palisade node-token create --node ID, then take the first line away.

# `rust-version` of Cargo.toml; a test compares them.
ARG RUST_VERSION=1.95
ARG DEBIAN=bookworm

FROM rust:${RUST_VERSION}-${DEBIAN} AS build
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    make filters crs \
    && cargo build --release --locked -p palisade -p harness --bin palisade --bin palisade-replay \
    && install -D -m 0755 -t /out/usr/bin target/release/palisade target/release/palisade-replay \
    && install -D -m 0644 -t /out/usr/share/palisade/filters target/filters/preset.wasm target/filters/waf.wasm \
       target/filters/api-contract.wasm target/filters/bot-guard.wasm target/filters/error-leakage.wasm target/filters/fail2ban.wasm target/filters/honeypot.wasm \
       target/filters/ip-reputation.wasm target/filters/login-guard.wasm target/filters/object-guard.wasm target/filters/sensitive-data.wasm target/filters/threat-gate.wasm target/filters/threat-response.wasm \
       target/filters/traffic-guard.wasm target/filters/upload-guard.wasm \
    && install -D -m 0644 LICENSE /out/usr/share/doc/palisade/LICENSE \
    && install -d -m 0700 -o 65532 -g 65532 /out/var/lib/palisade

FROM debian:${DEBIAN}-slim
COPY --from=build /out /
# Where gateways find the modules, too: give them this folder, from this image. The variables name files of tokens, no token.
# hadolint ignore=DL3064
ENV PALISADE_FILTERS_DIR=/usr/share/palisade/filters \
    PALISADE_DATA=/var/lib/palisade \
    PALISADE_LISTEN=0.0.0.0:8900 \
    PALISADE_XDS_LISTEN=0.0.0.0:18000 \
    PALISADE_NODE_TOKEN_FILE=/var/lib/palisade/node-tokens \
    PALISADE_NODE_TOKEN_CREATE=* \
    PALISADE_LOG_FORMAT=json
USER 65532:65532
WORKDIR /var/lib/palisade
VOLUME /var/lib/palisade
EXPOSE 8900 18000
# By the variables that `serve` has: at its port, with TLS if that has a certificate. /healthz: a control plane that lost its store
# still serves what it knows.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["/usr/bin/palisade", "healthy"]
ENTRYPOINT ["/usr/bin/palisade"]
CMD ["serve"]
