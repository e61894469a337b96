# The image of `streamgp flink`, in a checkout:
#
#     docker build -f docker/flink.Dockerfile -t streamgp-flink:0.1.0 .
#
# For a cluster in the container's own process, and for the machines of a larger one. Its packages
# are pinned by version, not by hash: those of PyFlink do not resolve with River's
# (flink-environment.sh).

FROM python:3.11.14-slim-bookworm@sha256:65a93d69fa75478d554f4ad27c85c1e69fa184956261b4301ebaf6dbb0a3543d
LABEL org.opencontainers.image.title="streamgp-flink" \
      org.opencontainers.image.description="Online learning from people who make mistakes, as a job of Apache Flink" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="MIT AND CC-BY-4.0"
# Java's packages link their manuals, whose directory a slim image lacks.
RUN mkdir -p /usr/share/man/man1 && \
    apt-get update && \
    apt-get install -y --no-install-recommends openjdk-17-jre-headless && \
    rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY LICENSE README.md pyproject.toml ./
COPY docker/flink-environment.sh docker/
COPY connectors connectors
COPY streamgp streamgp
# PyFlink asks for the name of its user.
RUN PIP_NO_CACHE_DIR=1 bash docker/flink-environment.sh /opt/streamgp-flink && \
    useradd --uid 10001 --home-dir /var/lib/streamgp --no-create-home streamgp && \
    install -d -o 10001 -g 10001 -m 0750 /var/lib/streamgp
# By default Flink writes its log beside its programs, where this user may not write, and .4 GB of
# it a day, which in a container may be memory.
ENV PATH=/opt/streamgp-flink/bin:$PATH \
    FLINK_LOG_DIR=/tmp \
    ROOT_LOG_LEVEL=WARN \
    HOME=/var/lib/streamgp \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
WORKDIR /var/lib/streamgp
VOLUME /var/lib/streamgp
USER 10001:10001
STOPSIGNAL SIGTERM
ENTRYPOINT ["streamgp"]
CMD ["flink", "--help"]
