-- Answers brought in from elsewhere: they count for the model, and for nothing else.

CREATE TABLE priors (                    -- one row a file
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL,                  -- SHA-256 of the file's content
    name TEXT NOT NULL,
    answers INTEGER NOT NULL,
    at INTEGER NOT NULL,
    taken_out INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE prior_answers (
    id INTEGER PRIMARY KEY,
    prior INTEGER NOT NULL REFERENCES priors (id),
    anchor INTEGER NOT NULL REFERENCES items (id),
    nearer INTEGER NOT NULL REFERENCES items (id),
    farther INTEGER NOT NULL REFERENCES items (id)
) STRICT;

CREATE INDEX answers_of_prior ON prior_answers (prior);
CREATE TRIGGER prior_answers_are_not_changed BEFORE UPDATE ON prior_answers
BEGIN SELECT RAISE (ABORT, 'answers are append-only'); END;
CREATE TRIGGER prior_answers_are_not_deleted BEFORE DELETE ON prior_answers
BEGIN SELECT RAISE (ABORT, 'answers are append-only'); END;
