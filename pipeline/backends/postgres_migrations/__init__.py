"""The history of the tables in PostgreSQL: alembic, one revision a file, in raw SQL."""
