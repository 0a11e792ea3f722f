-- Who may look at a study and steer it. Tokens are random; only their SHA-256 is kept.

CREATE TABLE sessions (                  -- experimenters who are signed in
    hash TEXT PRIMARY KEY,
    who TEXT NOT NULL,                   -- the name they gave; it goes into the log
    csrf TEXT NOT NULL,                  -- what their forms must carry
    lock TEXT NOT NULL,                  -- of the password they came in with: a new one ends it
    created_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL
) STRICT;

CREATE TABLE links (                     -- for looking only
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    label TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;

CREATE TABLE attempts (                  -- wrong passwords, by where they came from
    address TEXT PRIMARY KEY,
    failures INTEGER NOT NULL,
    last_at INTEGER NOT NULL
) STRICT;
