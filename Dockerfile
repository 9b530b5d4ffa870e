# One image for every part of a deployment: webserver, daemon, code server and workers. compose.yaml
# and deploy/kubernetes/values.yaml say which part is which command.

# Any image with Python 3.11 or later as python3 and its venv module, by its full name where yours
# comes from a registry of your own: docker build --build-arg BASE=... .
ARG BASE=python:3.11-slim-bookworm

FROM ${BASE} AS build
WORKDIR /build
ENV PATH=/opt/mail-assets/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python3 -m venv /opt/mail-assets
COPY requirements.lock requirements-deploy.lock requirements-dev.lock ./
RUN pip install --no-deps --requirement requirements-deploy.lock
COPY pyproject.toml README.md LICENSE dagster.yaml ./
COPY mail_assets mail_assets
COPY sql sql
# what builds the wheel is pinned as well
RUN grep --no-filename == requirements*.lock > constraints.txt \
    && PIP_CONSTRAINT=constraints.txt pip install --no-deps .
# what the first run of a worker would make: int8, which encodes, and the table of `backfill --fast`
RUN python3 -c "from pathlib import Path; \
from mail_assets.encoding.open import open_encoder; \
[open_encoder('all-minilm-l6-v2', precision, Path('/models')) for precision in ('int8', 'static')]"

FROM ${BASE}
COPY --from=build /opt/mail-assets /opt/mail-assets
# A number, so that Kubernetes can see that it is not root. It owns the folders of the volumes:
# a new volume takes the owner and the files of the folder that it is mounted on.
COPY --from=build --chown=10001:10001 /models /models
COPY --chown=10001:10001 deploy /opt/deploy
WORKDIR /data
# the second is DAGSTER_HOME of the Helm chart, where `backfill --launch` writes its dagster.yaml
RUN mkdir -p /opt/dagster/dagster_home \
    && chown 10001:10001 /data /opt/dagster/dagster_home
USER 10001:10001
ENV PATH=/opt/mail-assets/bin:$PATH \
    HOME=/data \
    MAIL_HOME=/data \
    MAIL_MODEL_DIR=/models \
    MAIL_LOCAL_STATE=refuse \
    MALLOC_ARENA_MAX=2 \
    PYTHONUNBUFFERED=1
# the settings are complete and right; compose.yaml asks each part whether it works
HEALTHCHECK --interval=60s --timeout=30s CMD ["mail-assets", "status"]
CMD ["mail-assets", "--help"]
