#!/bin/sh
# Kafka's tools and the health check know a worker by its container.
export SHINSEN_WORKER_NAME="${SHINSEN_WORKER_NAME:-$(hostname)}"
exec "$@"
