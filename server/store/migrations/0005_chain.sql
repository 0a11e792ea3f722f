-- The hash chain over every row that a log holds: see docs/replay.md.

CREATE TABLE chain (                     -- one record a commit; never changed
    id INTEGER PRIMARY KEY,              -- from 1, without gaps
    day INTEGER NOT NULL,                -- milliseconds since 1970 at its UTC midnight: finer, it
                                         -- would tell when an erased participant was there
    note TEXT NOT NULL,                  -- JSON where a period begins: all rows recorded afresh
    entries BLOB NOT NULL,               -- msgpack: (table, row, owner, digest before, after) …
    hash BLOB NOT NULL                   -- of all this and the hash before it
) STRICT;

CREATE INDEX chain_periods ON chain (id) WHERE note <> '';

CREATE TABLE chain_head (                -- where the next record goes on
    id INTEGER PRIMARY KEY CHECK (id = 1),
    last INTEGER NOT NULL,
    hash BLOB NOT NULL
) STRICT;

CREATE TABLE chain_salts (               -- what digests begin with: none can be guessed without
    participant INTEGER PRIMARY KEY,     -- whose rows; 0: rows that are about nobody
    salt BLOB NOT NULL
) STRICT;
