# The program alone, for pipelines: docker run --rm -v "$PWD:/data" dosimeter check run.toml …
# glibc and CUDA: `docker run --gpus all` on a machine with NVIDIA's container toolkit.
FROM rust:1.90-slim-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN cargo build --locked --profile dist -p dosimeter --features full

FROM debian:bookworm-slim
COPY --from=build /source/target/dist/dosimeter /usr/local/bin/dosimeter
COPY LICENSE-MIT LICENSE-APACHE crates/report/fonts/OFL.txt /usr/share/doc/dosimeter/
RUN useradd --create-home --uid 10001 dosimeter
USER dosimeter
WORKDIR /data
ENTRYPOINT ["dosimeter"]
CMD ["--help"]
