"""The tables of a log in PostgreSQL, step by step, as Alembic applies them."""
