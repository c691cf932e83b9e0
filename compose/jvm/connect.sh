#!/bin/sh
# A distributed worker; connectors are made over its REST interface (see ops/runbook.md). CONNECT_* in the environment become its
# properties: CONNECT_GROUP_ID is group.id.
set -eu
env | sed -n 's/^CONNECT_\([A-Z0-9_]*\)=\(.*\)$/\1 \2/p' | while read -r name value; do
    printf '%s=%s\n' "$(printf %s "$name" | tr 'A-Z_' 'a-z.')" "$value"
done > /tmp/connect.properties
# shellcheck disable=SC2086
exec java $JAVA_OPTIONS -cp '/opt/server/lib/*' org.apache.kafka.connect.cli.ConnectDistributed /tmp/connect.properties
