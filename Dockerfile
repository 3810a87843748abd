# An image to record .NET processes from: for `docker run --pid=container:NAME`, or an ephemeral container in Kubernetes
# (docs/record.md). Build it in the folder of an unpacked release for Linux: `docker build -t chronosym .`
#
# This file was not built where it was written: no Docker was at hand.
FROM debian:12-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends linux-perf \
    && rm -rf /var/lib/apt/lists/*
COPY chronosym /usr/local/bin/chronosym
WORKDIR /recordings
ENTRYPOINT ["chronosym"]
