# Build: docker build -t acp-relay .
# Run:   docker run --rm -i acp-relay connect wss://agents.example/acp
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY src src
# One static program: the image below has no C library to load.
ENV RUSTFLAGS="-C target-feature=+crt-static"
RUN cargo build --locked --release --bin acp-relay --target x86_64-unknown-linux-gnu

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/target/x86_64-unknown-linux-gnu/release/acp-relay /acp-relay
USER 65532:65532
ENTRYPOINT ["/acp-relay"]
