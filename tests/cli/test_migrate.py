"""`turnwal migrate`, and the other verbs on a PostgreSQL store."""

import json
from contextlib import closing

from tests.cli.worlds import run
from tests.store.building import lines_of, log_of
from tests.store.server import fresh_schema
from turnwal.store.postgres import PostgresStore


def test_the_tables_are_made_once() -> None:
    with fresh_schema(migrated=False) as url:
        missing = run("ls", "--store", url)
        assert missing.exit_code == 1
        assert "turnwal migrate" in missing.stderr
        assert run("migrate", "--store", url).stdout == "the tables are made\n"
        assert json.loads(run("migrate", "--store", url, "--json").stdout) == {"migrated": False}
        with closing(PostgresStore(url)) as store:
            store.put("s", lines_of(log_of()))
        assert run("verify", "s", "--store", url).exit_code == 0
        assert run("ls", "--store", url).exit_code == 0


def test_a_store_that_makes_its_own_is_left_alone() -> None:
    for url in ("sqlite:x.db", "memory:", "sessions"):
        result = run("migrate", "--store", url)
        assert result.exit_code == 1
        assert "error invalid_store_url" in result.stderr
