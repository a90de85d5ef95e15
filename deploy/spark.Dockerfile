# Spark as `make test-spark` tests it: one package, and Java.
FROM python:3.13-slim-bookworm
RUN apt-get update && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps \
    && rm -rf /var/lib/apt/lists/*
RUN pip install --no-cache-dir 'pyspark[connect]==4.3.0' 'pandas<3'
# the same user, and the same place for the lake, as in the other image: whichever mounts the volume first owns it
RUN useradd --uid 10001 --create-home spark && mkdir --parents /ledger/lake && chown --recursive spark /ledger
USER spark
WORKDIR /home/spark
CMD ["spark-class"]
