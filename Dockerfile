# The image of all longshore commands: the wheel with its locked dependencies. It runs as an unprivileged user, and
# writes nothing to its file system.
ARG PYTHON_IMAGE=python:3.12-slim

FROM ${PYTHON_IMAGE} AS build
ARG PIP_INDEX_URL=https://pypi.org/simple
ENV PIP_INDEX_URL=${PIP_INDEX_URL} UV_DEFAULT_INDEX=${PIP_INDEX_URL}
RUN pip install --no-cache-dir uv
WORKDIR /src
# Dependencies come first, because they change less often than the code.
COPY pyproject.toml uv.lock ./
RUN uv venv /opt/longshore \
    && uv export --frozen --no-dev --extra planner --extra agents --no-emit-project --output-file requirements.txt \
    && uv pip install --python /opt/longshore --compile-bytecode --requirement requirements.txt
COPY README.md LICENSE ./
COPY src ./src
RUN uv build --wheel && uv pip install --python /opt/longshore --compile-bytecode --no-deps dist/*.whl

FROM ${PYTHON_IMAGE}
COPY --from=build /opt/longshore /opt/longshore
ENV PATH=/opt/longshore/bin:/usr/local/bin:/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
ENTRYPOINT ["longshore"]
CMD ["run"]
