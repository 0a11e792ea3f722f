-- Questions of every kind in one form: options, known answer and choice are JSON lists of items, in
-- the order shown or chosen. What earlier versions stored of triplets (left, right, nearer, side)
-- stays as it was, since the hash chain covers it; new rows leave it empty.

CREATE TABLE former_queries AS SELECT * FROM queries;
CREATE TABLE former_answers AS SELECT * FROM answers;
DROP TABLE answers;
DROP TABLE queries;

CREATE TABLE queries (                   -- every question: ready in the queue, out, or answered
    id INTEGER PRIMARY KEY,
    origin TEXT NOT NULL CHECK (origin IN ('learner', 'schedule', 'fallback')),
    purpose TEXT NOT NULL CHECK (purpose IN ('cover', 'active', 'random', 'catch', 'repeat',
                                             'practice')),
    anchor INTEGER REFERENCES items (id),    -- NULL for the odd one out
    left INTEGER REFERENCES items (id),      -- up to migration 9, as right and nearer
    right INTEGER REFERENCES items (id),
    nearer INTEGER REFERENCES items (id),
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
    options TEXT CHECK (options IS NOT NULL AND options GLOB '[[]*]'),
    known TEXT CHECK (known GLOB '[[]*]'),   -- the known answer of catch and practice questions
    key TEXT CHECK (key IS NOT NULL),        -- anchor and sorted options: the same question, the same
    CHECK ((participant IS NULL) = (slot IS NULL)),
    CHECK ((participant IS NULL) = (token IS NULL))
) STRICT;

INSERT INTO queries SELECT *, json_array(left, right), iif(nearer IS NULL, NULL, json_array(nearer)),
    json_array(anchor, min(left, right), max(left, right)) FROM former_queries ORDER BY id;

CREATE UNIQUE INDEX one_query_per_slot ON queries (participant, slot) WHERE participant IS NOT NULL;
CREATE UNIQUE INDEX one_question_per_participant ON queries (participant, key)
    WHERE participant IS NOT NULL AND purpose NOT IN ('catch', 'repeat', 'practice');
CREATE INDEX ready_queries ON queries (id) WHERE participant IS NULL AND withdrawn IS NULL;
CREATE INDEX leases ON queries (expires_at) WHERE participant IS NOT NULL;
CREATE INDEX queries_of_step ON queries (step) WHERE step IS NOT NULL;

-- What a foreign key does for a single item.
CREATE TRIGGER options_are_items BEFORE INSERT ON queries
WHEN EXISTS (SELECT 1 FROM json_each(new.options) WHERE value NOT IN (SELECT id FROM items))
BEGIN SELECT RAISE (ABORT, 'an option is not an item'); END;

CREATE TABLE answers (                   -- append-only: triggers below refuse anything else
    seq INTEGER PRIMARY KEY,
    query INTEGER NOT NULL UNIQUE REFERENCES queries (id),
    side TEXT,                           -- up to migration 9
    late INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    rt_ms REAL,
    timings TEXT,                        -- JSON: onset, blur intervals, viewport, pointer …
    outcome TEXT CHECK (outcome IS NOT NULL AND outcome IN ('chosen', 'skip', 'timeout')),
    chosen TEXT CHECK (chosen GLOB '[[]*]'),
    CHECK ((outcome = 'chosen') = (chosen IS NOT NULL))
) STRICT;

INSERT INTO answers
SELECT a.*, iif(a.side IN ('skip', 'timeout'), a.side, 'chosen'),
    CASE WHEN a.side IN ('skip', 'timeout') THEN NULL WHEN a.side = 'left' THEN json_array(q.left)
    WHEN a.side = 'right' THEN json_array(q.right) ELSE '[]' END
FROM former_answers a LEFT JOIN queries q ON q.id = a.query ORDER BY a.seq;

CREATE TRIGGER answers_are_not_changed BEFORE UPDATE ON answers
BEGIN SELECT RAISE (ABORT, 'answers are append-only'); END;
CREATE TRIGGER answers_are_not_deleted BEFORE DELETE ON answers
BEGIN SELECT RAISE (ABORT, 'answers are append-only'); END;

DROP TABLE former_answers;
DROP TABLE former_queries;

ALTER TABLE state ADD COLUMN kind TEXT NOT NULL DEFAULT 'triplet';   -- of its questions
ALTER TABLE imported_answers ADD COLUMN trial INTEGER;   -- comparisons of one trial share it
