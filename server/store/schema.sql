-- Version 1 of a study's database. Times are milliseconds since 1970, UTC.

CREATE TABLE items (
    id INTEGER PRIMARY KEY,              -- the item's number in the model, from 0
    key TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    content TEXT NOT NULL                -- the text itself, or the SHA-256 of the file
) STRICT;

CREATE TABLE state (                     -- what the experimenter can change while it runs
    id INTEGER PRIMARY KEY CHECK (id = 1),
    status TEXT NOT NULL CHECK (status IN ('running', 'paused', 'stopped')),
    reason TEXT NOT NULL DEFAULT '',
    budget_answers INTEGER NOT NULL,
    budget_participants INTEGER NOT NULL,
    trials INTEGER NOT NULL,
    seed INTEGER NOT NULL
) STRICT;

CREATE TABLE participants (
    id INTEGER PRIMARY KEY,              -- their number, from 1; their schedule follows from it
    token TEXT NOT NULL UNIQUE,          -- what their links carry
    external TEXT UNIQUE,                -- who they are to the recruiting service, if it said
    entry TEXT NOT NULL,                 -- JSON: every parameter of the link they came by
    agent TEXT NOT NULL,
    stage TEXT NOT NULL CHECK (stage IN ('consent', 'instructions', 'practice', 'trials',
                                         'feedback', 'finished', 'declined', 'expired')),
    trials INTEGER NOT NULL,             -- how many questions they were promised
    done INTEGER NOT NULL DEFAULT 0,     -- how many of them are over, skipped ones included
    practised INTEGER NOT NULL DEFAULT 0,
    rested INTEGER NOT NULL DEFAULT 0,   -- the last break they came back from, by `done`
    visit INTEGER NOT NULL DEFAULT 0,    -- full page loads; tells the newest tab from older ones
    excluded INTEGER NOT NULL DEFAULT 0,
    feedback TEXT NOT NULL DEFAULT '',
    arrived_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    consented_at INTEGER,
    finished_at INTEGER
) STRICT;

CREATE TABLE queries (                   -- every question: ready in the queue, out, or answered
    id INTEGER PRIMARY KEY,
    origin TEXT NOT NULL CHECK (origin IN ('learner', 'schedule', 'fallback')),
    purpose TEXT NOT NULL CHECK (purpose IN ('cover', 'active', 'random', 'catch', 'repeat',
                                             'practice')),
    anchor INTEGER NOT NULL REFERENCES items (id),
    left INTEGER NOT NULL REFERENCES items (id),
    right INTEGER NOT NULL REFERENCES items (id),
    nearer INTEGER REFERENCES items (id),    -- the known answer of catch and practice questions
    repeats INTEGER REFERENCES queries (id),
    version INTEGER NOT NULL,            -- of the model that was there
    score REAL,
    probability REAL,                    -- of being chosen, where that is defined
    seed TEXT NOT NULL,
    learner INTEGER UNIQUE,              -- up to migration 8, the learner's own number of it
    step INTEGER,                        -- the worker's step that asked it
    created_at INTEGER NOT NULL,
    participant INTEGER REFERENCES participants (id),
    slot INTEGER,                        -- position in the session; practice is below 0
    token TEXT UNIQUE,
    leased_at INTEGER,
    expires_at INTEGER,
    withdrawn INTEGER,                   -- the step that took it back before anyone had it
    CHECK ((participant IS NULL) = (slot IS NULL)),
    CHECK ((participant IS NULL) = (token IS NULL))
) STRICT;

CREATE UNIQUE INDEX one_query_per_slot ON queries (participant, slot) WHERE participant IS NOT NULL;
CREATE UNIQUE INDEX one_triplet_per_person
    ON queries (participant, anchor, min(left, right), max(left, right))
    WHERE participant IS NOT NULL AND purpose NOT IN ('catch', 'repeat', 'practice');
CREATE INDEX ready_queries ON queries (id) WHERE participant IS NULL AND withdrawn IS NULL;
CREATE INDEX leases ON queries (expires_at) WHERE participant IS NOT NULL;

CREATE TABLE answers (                   -- append-only: triggers below refuse anything else
    seq INTEGER PRIMARY KEY,
    query INTEGER NOT NULL UNIQUE REFERENCES queries (id),
    side TEXT NOT NULL CHECK (side IN ('left', 'right', 'skip', 'timeout')),
    late INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    rt_ms REAL,
    timings TEXT                         -- JSON: onset, blur intervals, viewport, pointer …
) STRICT;

CREATE TRIGGER answers_are_not_changed BEFORE UPDATE ON answers
BEGIN SELECT RAISE (ABORT, 'answers are append-only'); END;
CREATE TRIGGER answers_are_not_deleted BEFORE DELETE ON answers
BEGIN SELECT RAISE (ABORT, 'answers are append-only'); END;

CREATE TABLE events (                    -- what people and the worker decided, in order
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    who TEXT NOT NULL,
    kind TEXT NOT NULL,
    participant INTEGER REFERENCES participants (id),
    detail TEXT NOT NULL DEFAULT '{}'
) STRICT;

CREATE TABLE steps (                     -- the worker's journal: the learner is a fold over it
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    up_to_query INTEGER NOT NULL,
    up_to_seq INTEGER NOT NULL,
    up_to_event INTEGER NOT NULL,
    work TEXT NOT NULL CHECK (work IN ('', 'refit', 'audit')),
    asked INTEGER NOT NULL,
    pending TEXT NOT NULL,               -- JSON: what was out (see server/store/journal.py)
    version INTEGER NOT NULL,
    hash TEXT NOT NULL,                  -- of model, questions and decision after the step
    seconds TEXT NOT NULL                -- JSON: by kind of work
) STRICT;

CREATE TABLE models (
    version INTEGER PRIMARY KEY,
    step INTEGER NOT NULL UNIQUE REFERENCES steps (id),
    up_to_seq INTEGER NOT NULL,
    answers INTEGER NOT NULL,            -- answers fitted: no catches, skips or excluded people
    audit INTEGER NOT NULL,              -- 1 where the rank was cross-validated
    rank INTEGER NOT NULL,
    lam REAL NOT NULL,
    temperature REAL NOT NULL,
    objective REAL NOT NULL,
    seed INTEGER NOT NULL,
    picture BLOB NOT NULL,               -- float64, items × rank, turned to the previous one
    embedding BLOB NOT NULL,             -- float64, items × rank, principal axes
    spread BLOB NOT NULL,                -- float64, items × rank × rank, of the embedding
    summary TEXT NOT NULL,               -- JSON: spectrum, evidence, progressive accuracy, ceiling
    hash TEXT NOT NULL,
    fingerprint TEXT NOT NULL
) STRICT;

CREATE TABLE decisions (
    step INTEGER PRIMARY KEY REFERENCES steps (id),
    stop INTEGER NOT NULL,
    settled INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    words TEXT NOT NULL,
    reasons TEXT NOT NULL                -- JSON: each criterion
) STRICT;

CREATE TABLE snapshot (                  -- where a restarted worker goes on from
    id INTEGER PRIMARY KEY CHECK (id = 1),
    step INTEGER NOT NULL REFERENCES steps (id),
    document BLOB NOT NULL,              -- zlib of JSON
    arrays BLOB NOT NULL                 -- .npz
) STRICT;

CREATE TABLE heartbeat (                 -- how the worker is
    id INTEGER PRIMARY KEY CHECK (id = 1),
    at INTEGER NOT NULL,
    pid INTEGER NOT NULL,
    doing TEXT NOT NULL,
    restarts INTEGER NOT NULL DEFAULT 0,
    trouble TEXT NOT NULL DEFAULT ''
) STRICT;
