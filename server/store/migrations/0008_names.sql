-- Tables and columns in the words of the documentation. No value changes: events and JSON that
-- earlier versions stored stay as they are, and are read by server/store/sqlite/former_names.py.

ALTER TABLE decisions RENAME COLUMN words TO message;
ALTER TABLE heartbeat RENAME COLUMN trouble TO error;
ALTER TABLE models RENAME COLUMN picture TO aligned;
ALTER TABLE models RENAME COLUMN spread TO covariance;
ALTER TABLE participants RENAME COLUMN practised TO practice_done;
ALTER TABLE participants RENAME COLUMN rested TO break_done;

DROP TRIGGER prior_answers_are_not_changed;
DROP TRIGGER prior_answers_are_not_deleted;
DROP INDEX answers_of_prior;
ALTER TABLE priors RENAME COLUMN taken_out TO removed;
ALTER TABLE priors RENAME TO imported_files;
ALTER TABLE prior_answers RENAME COLUMN prior TO file;
ALTER TABLE prior_answers RENAME TO imported_answers;
CREATE INDEX answers_of_file ON imported_answers (file);
CREATE TRIGGER imported_answers_are_not_changed BEFORE UPDATE ON imported_answers
BEGIN SELECT RAISE (ABORT, 'answers are append-only'); END;
CREATE TRIGGER imported_answers_are_not_deleted BEFORE DELETE ON imported_answers
BEGIN SELECT RAISE (ABORT, 'answers are append-only'); END;

DROP INDEX one_triplet_per_person;
CREATE UNIQUE INDEX one_triplet_per_participant
    ON queries (participant, anchor, min(left, right), max(left, right))
    WHERE participant IS NOT NULL AND purpose NOT IN ('catch', 'repeat', 'practice');
