"""`turnwal migrate`: make the tables of a store in a database, which no other verb does by itself."""

import click

from turnwal.cli import exits
from turnwal.cli.places import STORE_DEFAULT, json_option, store_option
from turnwal.cli.screen import Screen, print_json


@click.command(short_help="Make the tables of a PostgreSQL store.")
@store_option
@json_option
def migrate(*, store: str | None, as_json: bool) -> int:
    """Make the tables that a PostgreSQL store needs, in the first schema of the role's search path.

    Running it again, or from two machines at once, changes nothing more. Needs a role that may create tables; the
    program itself can do with fewer rights.
    """
    from turnwal.store.urls import migrate_store

    made = migrate_store(STORE_DEFAULT if store is None else store)
    if as_json:
        print_json({"migrated": made})
    else:
        Screen().line("the tables are made" if made else "nothing to do: the tables are there")
    return exits.OK
