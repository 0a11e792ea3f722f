-- Audits run beside refits and selections: the step whose state an audit was computed from, where
-- that is an earlier one than the step that took it in.

ALTER TABLE steps ADD COLUMN audit_of INTEGER REFERENCES steps (id);
