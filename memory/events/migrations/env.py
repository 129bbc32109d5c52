"""What Alembic runs: the steps on the connection that it is given."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection, version_table="migrations", transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
