"""An address that PostgreSQL's own library can't read is named without what may be secret in it."""

from __future__ import annotations

import pytest

from hearth.memory.errors import BadInput
from hearth.memory.events.postgres_pool import check_address


def test_an_address_that_cannot_be_read_is_named_without_its_password() -> None:
    """The mistyped parameter is told, host and database too; user, password and values are not."""
    with pytest.raises(BadInput) as refused:
        check_address("postgresql://hearth:s3cret@db.example:5432/memory?sslmodee=require&password=s3cret")
    said = str(refused.value)
    assert "postgres_url: got 'postgresql://…@db.example:5432/memory'" in said
    assert "sslmodee" in said
    assert "s3cret" not in said
