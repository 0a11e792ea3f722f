"""Recording in the hash chain what one connection changes, in the transaction that changes it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

from server.store.chain import (
    ABOUT,
    MAX_ENTRIES,
    MISSING,
    NOBODY,
    Connection,
    Entry,
    Salts,
    add,
    begin_period,
    digest,
    end,
    head,
    layout,
    owner_sql,
    quoted,
    salt_digest,
    tuples,
)
from server.store.tables import SALTS, TABLES


class Recorder:
    """Takes note of what one connection changes, and appends it to the chain before each commit.

    Temporary triggers keep what a row was when a transaction first touched it. They are undone with
    the transaction, or with the savepoint, so nothing is recorded that did not happen.
    """

    def __init__(self, c: Connection) -> None:
        self._c, self._layout = c, layout(c)
        self._codes = {table: code for code, table in enumerate(self._layout)}
        self._statements = {table: self._changes_of(table) for table in TABLES}
        width = max(len(self._layout[table]) for table in TABLES)
        kept = ", ".join(f"c{k}" for k in range(width))
        c.execute("PRAGMA temp_store = MEMORY")
        c.execute(
            f'CREATE TEMP TABLE chain_before ("table", row, there, {kept}, '
            'PRIMARY KEY ("table", row)) WITHOUT ROWID'
        )
        self._watch()

    def _changes_of(self, table: str) -> str:
        columns, about = self._layout[table], ABOUT.get(table)
        was = ", ".join(f"b.c{k}" for k in range(len(columns)))
        place = f"b.c{columns.index(about)}" if about else ""
        return (
            "SELECT b.row, b.there, t.rowid IS NOT NULL, "
            f"{owner_sql(table, 'b.row', place)}, {owner_sql(table, 't.rowid', f't.{about}')}, "
            f"{was}, {quoted(columns, 't.')} "
            f"FROM temp.chain_before b LEFT JOIN main.{table} t ON t.rowid = b.row "
            'WHERE b."table" = ?'
        )

    def _watch(self) -> None:
        for table in TABLES:
            new = (
                'INSERT OR IGNORE INTO chain_before ("table", row, there) '
                f"VALUES ('{table}', new.rowid, 0);"
            )
            old = f"{self._keep(table)} VALUES ({self._kept(table, 'old.')});"
            for event, body in (("INSERT", new), ("UPDATE", old + new), ("DELETE", old)):
                self._c.execute(
                    f"CREATE TEMP TRIGGER chain_{event}_{table} AFTER {event} ON main.{table} "
                    f"BEGIN {body} END"
                )

    def _keep(self, table: str) -> str:
        kept = ", ".join(f"c{k}" for k in range(len(self._layout[table])))
        return f'INSERT OR IGNORE INTO chain_before ("table", row, there, {kept})'

    def _kept(self, table: str, row: str) -> str:
        return f"'{table}', {row}rowid, 1, {quoted(self._layout[table], row)}"

    def pause(self, c: Connection) -> None:
        """Record nothing, and make room: the rows of a log come with the chain that has them."""
        for table in TABLES:
            for event in ("INSERT", "UPDATE", "DELETE"):
                c.execute(f"DROP TRIGGER temp.chain_{event}_{table}")
        for table in ("chain", "chain_head", SALTS):
            c.execute(f"DELETE FROM main.{table}")

    def resume(self, now: int, why: str) -> None:
        """Go on with the chain that was put there; where none was, begin one, saying why."""
        if head(self._c) is None:
            begin_period(self._c, now, why)
        self._watch()

    def append(self, now: int) -> None:
        """Record what the transaction has changed since it began."""
        self._append(now, None)

    def erase_salt(self, participant: int, now: int) -> None:
        """Record every row about a participant under a new salt; the old salt is overwritten."""
        about = {
            "participants": "t.rowid = :p",
            "queries": "t.participant = :p",
            "events": "t.participant = :p",
            "answers": "t.query IN (SELECT id FROM main.queries WHERE participant = :p)",
        }
        for table, whose in about.items():
            self._c.execute(
                f"{self._keep(table)} SELECT {self._kept(table, 't.')} FROM main.{table} t "
                f"WHERE {whose}",
                {"p": participant},
            )
        self._append(now, participant)

    def _append(self, now: int, erased: int | None) -> None:
        cursor = tuples(self._c)
        tables = cursor.execute('SELECT DISTINCT "table" FROM temp.chain_before').fetchall()
        if not tables:
            return
        at = end(self._c)
        if at is None:
            # Not a reason to lose answers. The verification tells.
            if erased is not None:
                Salts(self._c).renewed(erased)
            begin_period(self._c, now, MISSING)
        else:
            for part in self._changes([table for (table,) in tables], erased):
                at = add(self._c, at, now, "", part)
                cursor.execute("UPDATE main.chain_head SET last = ?, hash = ?", (at.last, at.hash))
        cursor.execute("DELETE FROM temp.chain_before")

    def _changes(self, tables: list[str], erased: int | None) -> Iterator[list[Entry]]:
        """What has changed, in parts for a record each; new salts go before what they are for."""
        salts, old = Salts(self._c), dict[int, bytes]()
        if erased is not None:
            old[erased] = salts.of(erased)
            salts.renewed(erased)
        entries = chain.from_iterable(self._rows(table, salts, old) for table in tables)
        while part := list(islice(entries, MAX_ENTRIES)):
            made = [
                Entry(
                    self._codes[SALTS],
                    owner,
                    NOBODY,
                    salt_digest(old[owner]) if owner in old else None,
                    salt_digest(salt),
                )
                for owner, salt in salts.made.items()
            ]
            salts.made.clear()
            yield made + part

    def _rows(self, table: str, salts: Salts, old: dict[int, bytes]) -> Iterator[Entry]:
        code, width = self._codes[table], len(self._layout[table])
        rows = tuples(self._c).execute(self._statements[table], (table,))
        for row, was, there, owned, owner, *values in rows:
            before = after = None
            if was:
                before = digest(old.get(owned) or salts.of(owned), table, values[:width])
            if there:
                after = digest(salts.of(owner), table, values[width:])
            if before != after:
                yield Entry(code, row, owner if there else NOBODY, before, after)
