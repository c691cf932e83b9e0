#!/bin/sh
# One TDB2 dataset at /ds.
mkdir -p /var/lib/server/tdb2
# shellcheck disable=SC2086
exec java $JAVA_OPTIONS -cp '/opt/server/lib/*' org.apache.jena.fuseki.main.cmds.FusekiMainCmd \
    --port 3030 --tdb2 --loc=/var/lib/server/tdb2 --update /ds
