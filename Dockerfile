# The gateway with its embedded stores. Memory lives in the volume /data; the configuration is mounted:
#   docker run -p 4000:4000 -v hearth:/data -v ./litellm_config.yaml:/etc/hearth/litellm_config.yaml:ro hearth

FROM python:3.11-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY requirements.lock ./
RUN python -m venv /venv \
    && /venv/bin/pip install --require-hashes --no-deps --only-binary :all: -r requirements.lock
COPY pyproject.toml README.md ./
COPY config config
COPY gateway gateway
COPY memory memory
COPY testing testing
RUN /venv/bin/pip install --no-deps --no-build-isolation . \
    && /venv/bin/pip uninstall --yes setuptools \
    && /venv/bin/pip uninstall --yes pip

FROM python:3.11-slim
RUN python -m pip uninstall --yes --root-user-action ignore wheel setuptools pip \
    && useradd --uid 10001 --no-create-home --home-dir /data hearth \
    && install --directory --owner hearth --group hearth --mode 700 /data
COPY --from=build /venv /venv
ENV PATH=/venv/bin:$PATH HEARTH_DATA_DIR=/data PYTHONUNBUFFERED=1
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 4000
HEALTHCHECK --start-period=60s --interval=15s --timeout=5s CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:4000/memory/v1/health/ready', timeout=4)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["hearth"]
CMD ["serve", "--config", "/etc/hearth/litellm_config.yaml", "--host", "0.0.0.0", "--port", "4000"]
