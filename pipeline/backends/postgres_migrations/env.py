"""What alembic runs: the revisions, on the connection and in the transaction of `upgrade.migrate`."""

from alembic import context

from pipeline.backends.postgres_migrations.known import VERSION_TABLE

if hasattr(context, "config"):  # alembic runs this file; an import alone does nothing
    context.configure(connection=context.config.attributes["connection"], version_table=VERSION_TABLE)
    with context.begin_transaction():
        context.run_migrations()
