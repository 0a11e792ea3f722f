"""Recording the changes of a connection in the hash chain, within the same transaction."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from server.store.hash_chain.records import (
    ABOUT,
    MAX_ENTRIES,
    MISSING,
    NOBODY,
    Connection,
    RowChange,
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
from server.store.sqlite.tables import SALTS, TABLES

_TRIGGERS = ("insert", "update", "renumber", "delete")


class Recorder:
    """Records the changes of one connection, and appends them to the chain before each commit.

    Temporary triggers keep each row that a transaction touches: its first and its current state,
    and whose salt it has. They are rolled back with the transaction or the savepoint, so that
    nothing is recorded that was not committed. This runs with every answer, so as few statements
    as possible are used.
    """

    def __init__(self, c: Connection) -> None:
        self._c, self._layout = c, layout(c)
        self._codes = {table: code for code, table in enumerate(self._layout)}
        self._width = max(len(self._layout[table]) for table in TABLES)
        places = [f"{when}{k}" for when in "ba" for k in range(self._width)]
        c.execute(
            'CREATE TEMP TABLE chain_changed ("table", row, was, there, owned, owner, '
            f'{", ".join(places)}, PRIMARY KEY ("table", row)) WITHOUT ROWID'
        )
        self._select = (
            'SELECT t."table", t.row, t.was, t.there, t.owned, t.owner, b.salt, a.salt, '
            f"{', '.join(places)} FROM temp.chain_changed t "
            f"LEFT JOIN main.{SALTS} b ON b.participant = t.owned "
            f"LEFT JOIN main.{SALTS} a ON a.participant = t.owner"
        )
        self._watch()

    def _note(self, table: str, before: str, after: str) -> str:
        """Return SQL that records a row; `before` and `after` are aliases, empty if it is absent.

        Its state when the transaction first touched it is recorded only once.
        """
        names, values, news = [], [], ["there"]
        for alias, (is_there, whose), letter in (
            (before, ("was", "owned"), "b"),
            (after, ("there", "owner"), "a"),
        ):
            names += [is_there]
            values += [str(int(bool(alias)))]
            if alias:
                about = f"{alias}.{ABOUT.get(table)}"
                columns = self._layout[table]
                names += [whose, *(f"{letter}{k}" for k in range(len(columns)))]
                values += [owner_sql(table, f"{alias}.rowid", about), quoted(columns, f"{alias}.")]
        if after:
            news += ["owner", *(f"a{k}" for k in range(len(self._layout[table])))]
        return (
            f'INSERT INTO chain_changed ("table", row, {", ".join(names)}) '
            f"SELECT '{table}', {after or before}.rowid, {', '.join(values)} %s "
            'ON CONFLICT ("table", row) DO UPDATE SET '
            + ", ".join(f"{name} = excluded.{name}" for name in news)
        )

    def _watch(self) -> None:
        for table in TABLES:
            gone, new, same = (
                self._note(table, *aliases) % "WHERE true"
                for aliases in (("old", ""), ("", "new"), ("old", "new"))
            )
            for name, event, body in (
                ("insert", f"INSERT ON main.{table}", new),
                ("update", f"UPDATE ON main.{table} WHEN old.rowid = new.rowid", same),
                (
                    "renumber",
                    f"UPDATE ON main.{table} WHEN old.rowid <> new.rowid",
                    f"{gone}; {new}",
                ),
                ("delete", f"DELETE ON main.{table}", gone),
            ):
                self._c.execute(
                    f"CREATE TEMP TRIGGER chain_{name}_{table} AFTER {event} BEGIN {body}; END"
                )

    def _unwatch(self) -> None:
        for table in TABLES:
            for name in _TRIGGERS:
                self._c.execute(f"DROP TRIGGER IF EXISTS temp.chain_{name}_{table}")

    def close(self) -> None:
        """Stop recording."""
        self._unwatch()
        self._c.execute("DROP TABLE temp.chain_changed")

    def pause(self, c: Connection) -> None:
        """Stop recording and delete the chain, since the rows of a log come with their own."""
        self._unwatch()
        for table in ("chain", "chain_head", SALTS):
            c.execute(f"DELETE FROM main.{table}")

    def resume(self, now: int, why: str) -> None:
        """Continue the imported chain; if there is none, start one, with the reason."""
        if head(self._c) is None:
            begin_period(self._c, now, why)
        self._watch()

    def append(self, now: int) -> None:
        """Record what the transaction has changed so far."""
        self._append(now, None)

    def erase_salt(self, participant: int, now: int) -> None:
        """Record every row about a participant with a new salt, which overwrites the old one."""
        about = {
            "participants": "t.rowid = :p",
            "queries": "t.participant = :p",
            "events": "t.participant = :p",
            "answers": "t.query IN (SELECT id FROM main.queries WHERE participant = :p)",
        }
        for table, whose in about.items():
            rows = f"FROM main.{table} t WHERE {whose}"
            self._c.execute(self._note(table, "t", "t") % rows, {"p": participant})
        self._append(now, participant)

    def _append(self, now: int, erased: int | None) -> None:
        changes = self._changes(erased)
        part = next(changes, None)
        if part is None:
            return
        at = end(self._c)
        if at is None:
            # Not a reason to lose answers; the verification reports it.
            begin_period(self._c, now, MISSING)
        else:
            while part is not None:
                at = add(self._c, at, now, "", part)
                part = next(changes, None)
            self._c.execute("UPDATE main.chain_head SET last = ?, hash = ?", (at.last, at.hash))
        self._c.execute("DELETE FROM temp.chain_changed")

    def _changes(self, erased: int | None) -> Iterator[list[RowChange]]:
        """Yield the changes in parts, one per record; new salts come before rows that use them."""
        salts, old = Salts(self._c), dict[int, bytes]()
        if erased is not None:
            old[erased] = salts.of(erased)
            salts.renewed(erased)
        rows = self._rows(salts, old)
        while part := list(islice(rows, MAX_ENTRIES)):
            made = [
                RowChange(
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

    def _rows(self, salts: Salts, old: dict[int, bytes]) -> Iterator[RowChange]:
        width = self._width
        # All at once, since salts may be added meanwhile.
        rows = tuples(self._c).execute(self._select).fetchall()
        for table, row, was, there, owned, owner, salt_then, salt_now, *values in rows:
            before = after = None
            count = len(self._layout[table])
            if was:
                salt = old.get(owned) or salt_then or salts.of(owned)
                before = digest(salt, table, values[:count])
            if there:
                salt = (salt_now if owner not in salts.made else None) or salts.of(owner)
                after = digest(salt, table, values[width : width + count])
            if before != after:
                yield RowChange(self._codes[table], row, owner if there else NOBODY, before, after)
