"""From change events to indexes: ports, pure steps, shells (embedded, Faust) and backends."""
