"""The Debezium connector of one PostgreSQL database as Shinsen wants it, and what the database needs first."""

import re
from collections.abc import Mapping, Sequence

HEARTBEAT, SIGNAL = "shinsen_heartbeat", "shinsen_signal"
"""Tables that the connector writes; see `pipeline.decoding.debezium.OWN_TABLES`."""
PARTITIONS = 4
WEEK_MS = 7 * 24 * 60 * 60 * 1000
ALWAYS = {
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "plugin.name": "pgoutput",
    "publication.autocreate.mode": "disabled",
    "snapshot.mode": "initial",
    # A truncate is left out by default, and its rows would be found for ever.
    "skipped.operations": "none",
    # Types come with each message, so that no mapping has to tell them.
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "true",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "true",
    # Exact, and readable without a schema too.
    "decimal.handling.mode": "string",
    "interval.handling.mode": "string",
    "poll.interval.ms": "50",
}


def database_script(source: str, tables: Sequence[str], schema: str = "public") -> str:
    """Return the SQL that an administrator runs once, in the database, for these tables (`schema.table`)."""
    named = ", ".join(_quoted(table) for table in (*tables, f"{schema}.{HEARTBEAT}", f"{schema}.{SIGNAL}"))
    return f"""-- postgresql.conf: wal_level = logical. The connector's role needs LOGIN, REPLICATION, SELECT on these
-- tables, and INSERT, UPDATE on the two that it writes.
CREATE TABLE IF NOT EXISTS {_quoted(schema)}.{HEARTBEAT} (id int PRIMARY KEY, at timestamptz NOT NULL);
CREATE TABLE IF NOT EXISTS {_quoted(schema)}.{SIGNAL} (id text PRIMARY KEY, type text NOT NULL, data text);
CREATE PUBLICATION {slot_name(source)} FOR TABLE {named};
"""


def connector(
    source: str,
    tables: Sequence[str],
    database: Mapping[str, str],
    *,
    schema: str = "public",
    heartbeat_ms: int = 1000,
    partitions: int = PARTITIONS,
    **changed: str,
) -> dict[str, str]:
    """Return the body for `PUT /connectors/SOURCE/config`; `database`: hostname, port, user, password, dbname.

    The topics are called `<source>.<schema>.<table>`. `changed` replaces or adds settings by Debezium's names.
    """
    name = slot_name(source)
    beat = (
        f"INSERT INTO {_quoted(schema)}.{HEARTBEAT} (id, at) VALUES (1, now()) "  # noqa: S608 - names of ours
        "ON CONFLICT (id) DO UPDATE SET at = excluded.at"
    )
    rows = {
        "topic.prefix": source,
        "table.include.list": ",".join((*tables, f"{schema}.{HEARTBEAT}", f"{schema}.{SIGNAL}")),
        "slot.name": name,
        "publication.name": name,
        # An idle database moves on, so that whoever waits for a position is not left waiting.
        "heartbeat.interval.ms": str(heartbeat_ms),
        "heartbeat.action.query": beat,
        "signal.data.collection": f"{schema}.{SIGNAL}",
        # Brokers create no topic by a mere mention; -1 is the broker's own number.
        "topic.creation.default.partitions": str(partitions),
        "topic.creation.default.replication.factor": "-1",
        "topic.creation.default.cleanup.policy": "delete",
        "topic.creation.default.retention.ms": str(WEEK_MS),
    }
    return ALWAYS | rows | {f"database.{key}": value for key, value in database.items()} | changed


def slot_name(source: str) -> str:
    """Return the name of slot and publication: lower-case letters, digits and underscores."""
    return "shinsen_" + re.sub(r"[^a-z0-9_]", "_", source.lower())


def _quoted(name: str) -> str:
    return ".".join(part if re.fullmatch(r"[a-z_][a-z0-9_]*", part) else f'"{part}"' for part in name.split("."))
