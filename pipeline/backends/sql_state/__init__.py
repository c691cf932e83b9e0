"""The state store in SQL that SQLite and PostgreSQL both understand; the two backends only bring a connection."""
