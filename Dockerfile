# Build: docker build -t acp-relay .
# Run:   docker run --rm --tmpfs /tmp acp-relay demo
#        docker run --rm -i acp-relay connect wss://agents.example/acp
#        docker run --rm -v ./acp-relay.toml:/etc/acp-relay/acp-relay.toml:ro acp-relay serve
# Hardened: --read-only --cap-drop ALL --security-opt no-new-privileges --tmpfs /tmp
#
# `docker stop` has running turns finish: give it more time than `drain.max` (docker stop -t 60).
#
# Alpine builds a static program against musl, whose resolver is part of it and reads no more than
# /etc/resolv.conf and /etc/hosts, which the container engine provides; glibc's would load shared
# libraries that are not there. The image holds no agent: for `serve` and `connect --`, copy the
# program into an image that does.
#
# The tag of the first stage can move. For a build that can be repeated, name its digest:
# docker build --build-arg RUST=rust:1.95-alpine@sha256:… -t acp-relay .
# Nothing is installed into it: gcc and musl-dev, which the build needs, are part of it.
ARG RUST=rust:1.95-alpine
FROM ${RUST} AS build
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY mappings mappings
COPY src src
RUN cargo build --locked --release --features cluster --bin acp-relay

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/target/release/acp-relay /acp-relay
USER 65532:65532
STOPSIGNAL SIGTERM
# Inside of the container alone; `serve` answers there, and so does its health.
ENV ACP_RELAY_ADMIN=127.0.0.1:9464
HEALTHCHECK --interval=30s --timeout=5s CMD ["/acp-relay", "health"]
ENTRYPOINT ["/acp-relay"]
