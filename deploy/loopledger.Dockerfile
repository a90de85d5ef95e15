# The program with what a shared ledger needs: PostgreSQL, OTLP over gRPC, Spark's client.
FROM python:3.13-slim-bookworm
WORKDIR /build
COPY pyproject.toml README.md LICENSE ./
COPY ledger ledger
COPY replay replay
COPY webui webui
RUN pip install --no-cache-dir '.[postgres,grpc,spark]' && rm -rf /build
RUN useradd --uid 10001 --create-home ledger && mkdir --parents /ledger/lake && chown --recursive ledger /ledger
USER ledger
WORKDIR /ledger
CMD ["loopledger", "--help"]
