# TensorFlow Serving's contract: REST on 8501, gRPC on 8500, the model in $MODEL_BASE_PATH/$MODEL_NAME.
FROM python:3.11-slim AS build
WORKDIR /build
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY protos protos
COPY runstep runstep
COPY runtime runtime
COPY server server
RUN python -m venv /opt/runstep \
 && /opt/runstep/bin/pip install --no-cache-dir -c constraints.txt '.[fast,auth]' \
 && /opt/runstep/bin/pip uninstall --yes pip setuptools

FROM python:3.11-slim
# Manifests for TensorFlow Serving name the executable by its path.
RUN useradd --system --create-home --uid 10001 runstep && mkdir /models && chown runstep /models \
 && ln -s /opt/runstep/bin/tensorflow_model_server /usr/bin/tensorflow_model_server
COPY --from=build /opt/runstep /opt/runstep
ENV PATH=/opt/runstep/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    MODEL_NAME=model \
    MODEL_BASE_PATH=/models
USER runstep
EXPOSE 8500 8501
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8501/readyz', timeout=2)"]
ENTRYPOINT ["runstep", "serve"]
CMD ["--port=8500", "--rest_api_port=8501"]
