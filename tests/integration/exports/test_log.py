"""The log rebuilds a study, and shows every change made to it, by line."""

from __future__ import annotations

import json
import re
import sqlite3
import time

import numpy as np
import pytest

from server.exports import log
from server.learning.verification import verify
from server.store.hash_chain import records as chain
from server.store.sqlite.tables import TABLES, key_of
from tests.support.open_study import Desk, Respondent

TOML = """
[session]
trials = 30
practice = 1
break_every = 0
feedback = false
"""
ITEMS = 8


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A small study with exclusions and a pause in its history."""
    opened = Desk(tmp_path_factory.mktemp("log") / "words", TOML, items=ITEMS)
    worker, participant = opened.worker(), Respondent(ITEMS, 2)
    worker.turn()
    for number in range(4):
        stage = opened.new_participant(participant_label=f"person {number}")
        # Another assignment: the parameters of the first go into an event.
        opened.service.arrive({"participant_label": f"person {number}", "assignmentId": "new"})
        while stage.kind in ("practice", "trial"):
            stage = opened.answer(stage, participant.side(stage))
            opened.now += 700
            if stage.done % 7 == 0:
                worker.turn()
        if number == 1:
            opened.control.pause("test")
            opened.control.resume("test")
            opened.control.exclude("test", 1, "too fast")
            worker.turn()
    opened.control.restore("test", 1, "a mistake")
    worker.turn()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def written(desk, tmp_path_factory):
    path = tmp_path_factory.mktemp("written") / "study.log.jsonl"
    path.write_bytes(b"".join(log.lines(desk.database, desk.study)))
    return path


def contents(database):
    def read(c):
        out = {}
        for table in TABLES:
            names = [row["name"] for row in c.execute(f"PRAGMA table_info({table})")]
            kept = ", ".join(f'"{name}"' for name in names if name != "token")
            out[table] = [tuple(row) for row in c.execute(f"SELECT {kept} FROM {table}")]
        return out

    return database.read(read)


def test_the_log_alone_rebuilds_an_equal_database(desk, written, tmp_path):
    study, database, where = log.load(written, tmp_path / "study.db", desk.clock)
    assert contents(database) == contents(desk.database)
    assert study.settings == desk.study.settings
    assert [item.key for item in study.items] == [item.key for item in desk.study.items]
    text = written.read_text().splitlines()
    assert '"kind":"answers","row":{"seq":5,' in text[where["answers", 5] - 1]
    database.close()


def test_the_log_holds_no_credentials(desk, written):
    text = written.read_text()
    for (token,) in desk.rows("SELECT token FROM participants UNION SELECT token FROM queries"):
        assert token is None or token not in text


def test_pseudonyms_leave_no_trace_of_who_it_was(desk):
    plain = b"".join(log.lines(desk.database, desk.study))
    hidden = b"".join(log.lines(desk.database, desk.study, pseudonyms=True))
    assert b"person 2" in plain
    assert b"person 2" not in hidden


def test_it_replays_bit_for_bit_from_the_database_and_from_the_log(desk, written, tmp_path):
    study, database, where = log.load(written, tmp_path / "study.db", desk.clock)
    for found in (
        verify(desk.database, desk.study, time.perf_counter),
        verify(database, study, time.perf_counter, where),
    ):
        assert found.mismatches == []
        assert found.fingerprint_match
        assert found.models_checked == desk.rows("SELECT count(*) FROM models")[0][0] > 3
        assert found.decisions_checked == found.models_checked
        assert found.questions_checked > 50
    database.close()


def changed_answer(lines, at, rng):
    rows = [k for k, line in enumerate(lines) if b'"kind":"answers"' in line]
    at = rows[at % len(rows)]
    lines[at] = with_another_choice(lines[at])
    return at


def with_another_choice(line):
    """The line of an answer, as if another item had been chosen."""
    chosen = int(re.search(rb'"chosen":"\[(\d+)\]"', line)[1])
    return line.replace(b'"chosen":"[%d]"' % chosen, b'"chosen":"[%d]"' % ((chosen + 1) % ITEMS))


def edited_model(lines, at, rng):
    rows = [k for k, line in enumerate(lines) if b'"kind":"models"' in line]
    at = rows[at % len(rows)]
    old, new = ((b'"rank":', b'"rank":1'), (b'"base64":"', b'"base64":"A'))[int(rng.integers(2))]
    lines[at] = lines[at].replace(old, new, 1)
    return at


def flipped_bit(lines, at, rng):
    raw = bytearray(lines[at])
    spot = int(rng.integers(len(raw) - 1))
    raw[spot] ^= 1 << int(rng.integers(7))
    if raw[spot] == ord("\n"):
        raw[spot] = ord("?")
    lines[at] = bytes(raw)
    return at


def lost_line(lines, at, rng):
    del lines[at]
    return at


def doubled_line(lines, at, rng):
    lines.insert(at, lines[at])
    return at + 1


def swapped_lines(lines, at, rng):
    at, other = sorted(int(k) for k in rng.choice(len(lines), 2, replace=False))
    lines[at], lines[other] = lines[other], lines[at]
    return at


def cut_line(lines, at, rng):
    lines[at] = lines[at][: int(rng.integers(1, len(lines[at])))] + b"\n"
    return at


def truncated_tail(lines, at, rng):
    """At any byte: at the end of a line, or within one."""
    kept = lines[at][: int(rng.integers(len(lines[at])))]
    lines[at:] = [kept] if kept and rng.random() < 0.5 else []
    return at


CORRUPTIONS = (
    *(changed_answer, edited_model, flipped_bit, lost_line),
    *(doubled_line, swapped_lines, cut_line, truncated_tail),
)


def test_every_single_line_corruption_is_found_in_its_line(written, tmp_path):
    original = written.read_bytes().splitlines(keepends=True)
    rng = np.random.default_rng(7)
    path = tmp_path / "bad.jsonl"
    for case in range(200):
        lines, corrupt = list(original), CORRUPTIONS[case % len(CORRUPTIONS)]
        at = corrupt(lines, int(rng.integers(len(lines))), rng)
        assert lines != original
        path.write_bytes(b"".join(lines))
        with path.open("rb") as file, pytest.raises(log.BadLog) as caught:
            for _ in log.read(file):
                pass
        assert caught.value.line == at + 1, (corrupt.__name__, at, caught.value)


def with_ends(path, raw):
    path.write_bytes(raw)
    with path.open("rb") as file:
        return list(log.read(file))


def test_converted_line_ends_make_no_other_log(written, tmp_path):
    raw = written.read_bytes()
    converted, path = raw.replace(b"\n", b"\r\n"), tmp_path / "converted.jsonl"
    assert with_ends(path, converted) == with_ends(tmp_path / "plain.jsonl", raw)
    assert log.is_log(path)
    _, database, where = log.load(path, tmp_path / "study.db", lambda: 0)
    database.close()
    assert len(where) == raw.count(b"\n") - 2
    lines = converted.splitlines(keepends=True)
    for at, spoilt in (
        (7, lines[7].replace(b"\r\n", b"\n")),
        (7, lines[7].replace(b"\r\n", b"\r\r\n")),
        (7, lines[7].replace(b'"kind"', b'"kinD"')),
        (len(lines) - 1, lines[-1].replace(b"\r\n", b"\r")),
        (0, lines[0].replace(b"\r\n", b"\n")),
    ):
        with pytest.raises(log.BadLog) as caught:
            with_ends(path, b"".join([*lines[:at], spoilt, *lines[at + 1 :]]))
        # Of a first line that differs from all others, the second is the first to show it.
        assert caught.value.line == max(2, at + 1)
    with pytest.raises(log.BadLog, match="the log ends here, but its last line is missing"):
        with_ends(path, b"".join(lines[:-1]))


def test_a_line_that_was_hashed_again_is_found_by_the_next_one(written, tmp_path):
    lines = written.read_bytes().splitlines(keepends=True)
    at = next(k for k, line in enumerate(lines) if b'"kind":"answers"' in line)
    before = json.loads(lines[at - 1])["hash"]
    body = lines[at][: lines[at].rindex(b',"hash"')] + b"}"
    lines[at] = log._hashed(with_another_choice(body), before)[0]
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b"".join(lines))
    with path.open("rb") as file, pytest.raises(log.BadLog, match="or the one before it"):
        for _ in log.read(file):
            pass


FORGED = [
    ("models", "SELECT max(version) FROM models WHERE rank > 0", "rank = rank + 1"),
    ("models", "SELECT min(version) FROM models", "summary = replace(summary, '0', '1')"),
    ("models", "SELECT version FROM models WHERE rank > 0 ORDER BY version LIMIT 1 OFFSET 1",
     "embedding = zeroblob(length(embedding))"),
    ("decisions", "SELECT max(step) FROM decisions", "rank = rank + 1"),
    ("decisions", "SELECT min(step) FROM decisions", "reasons = '[]'"),
    ("queries", "SELECT max(id) FROM queries WHERE step IS NOT NULL", "score = score + 1"),
    ("queries", "SELECT min(id) FROM queries WHERE step IS NOT NULL AND participant IS NULL",
     "purpose = CASE purpose WHEN 'random' THEN 'active' ELSE 'random' END"),
]  # fmt: skip
CHANGED_ANSWER = (
    "answers",
    "SELECT seq FROM answers JOIN queries ON queries.id = query WHERE seq > 20 "
    "AND purpose IN ('cover', 'active', 'random') ORDER BY seq LIMIT 1",
    "chosen = (SELECT json_array(iif(options ->> 0 = chosen ->> 0, options ->> 1, options ->> 0)) "
    "FROM queries WHERE id = query)",
)


def replayed_when_forged(desk, written, folder, forged):
    """A replay of a log made again with all its hashes, the chain's too; and the forged lines."""
    study, database, where = log.load(written, folder / "study.db", desk.clock)
    raw, lines = sqlite3.connect(folder / "study.db"), set()
    raw.execute("DROP TRIGGER answers_are_not_changed")
    for table, row, change in forged:
        (number,) = raw.execute(row).fetchone()
        done = raw.execute(f"UPDATE {table} SET {change} WHERE {key_of(table)} = ?", (number,))
        assert done.rowcount == 1
        lines.add(where[table, number])
    raw.execute("DELETE FROM chain")
    raw.execute("DELETE FROM chain_head")
    chain.begin_period(raw, desk.now, chain.NEW)
    raw.commit()
    raw.close()
    found = verify(database, study, time.perf_counter, where, cores=2)
    database.close()
    assert len(lines) == len(forged)
    return found.mismatches, lines


def test_what_was_forged_with_care_is_named_and_nothing_else(desk, written, tmp_path):
    found, lines = replayed_when_forged(desk, written, tmp_path, FORGED)
    assert {finding.line for finding in found} == lines


def test_an_answer_changed_with_care_leads_to_other_models(desk, written, tmp_path):
    found, _ = replayed_when_forged(desk, written, tmp_path, [CHANGED_ANSWER])
    assert any("model" in finding.what for finding in found)
    assert all(finding.line is not None for finding in found)


def forged(path, change):
    """The log with a line changed by a participant who knows how the hashes are made."""
    before, out = "", []
    for number, raw in enumerate(path.read_bytes().splitlines(keepends=True), start=1):
        body = change(number, raw[: raw.rfind(b',"hash":"')] + b"}")
        line, before = log._hashed(body, before)
        out.append(line)
    return b"".join(out)


@pytest.mark.parametrize(
    ("line", "old", "new"),
    [
        (1, rb'"items":\[', b'"items":[5,'),
        (1, rb'"file":""', b'"fool":""'),
        (1, rb'"name":"words"', b'"name":"../../elsewhere"'),
        (1, rb'"settings":\{', b'"settings":{"title":7,"x":{'),
        (2, rb'"row":\{.*', b'"row":[]}'),
        (2, rb'.*', b"[" * 100_000),
        (2, rb'"row":\{.*', b'"row":{"x":' + b"[" * 100_000 + b"}"),
        (2, rb'"id":0', b'"id":' + b"9" * 30),
        (2, rb'"id":0', b'"id":{}'),
        (2, rb'"id":0', b'"no":0'),
        (2, rb'"id":0', b'"id":"zero"'),
        (2, rb'"key":"[^"]*"', b'"key":null'),
        (2, rb'"kind":"items"', b'"kind":"sqlite_schema"'),
        (2, rb'"key":"[^"]*"', b'"key":{"base64":"%"}'),
        (2, rb'"key":"[^"]*"', b'"key":{"x":1}'),
        (-2, rb'"last":', b'"next":'),
        (-2, rb'"hash":\{"base64":"[^"]*"\}', b'"hash":null'),
        (-2, rb'"hash":\{"base64":"[^"]*"\}', b'"hash":{"base64":7}'),
        (-3, rb'"entries":\{"base64":"[^"]*"\}', b'"entries":{}'),
        (-3, rb'"note":""', b'"note":null'),
    ],
)  # fmt: skip
def test_forged_logs_are_refused_in_one_sentence(written, tmp_path, line, old, new):
    path = tmp_path / "forged.jsonl"
    line %= written.read_bytes().count(b"\n") + 1
    path.write_bytes(
        forged(written, lambda at, raw: re.sub(old, new, raw, count=1) if at == line else raw)
    )
    with pytest.raises(log.BadLog) as caught:
        log.load(path, tmp_path / "study.db", lambda: 0)
    assert caught.value.line == line
    assert "\n" not in str(caught.value)[:300]


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "..\\..\\x.png", ".."])
def test_a_log_cannot_point_out_of_its_folder(written, tmp_path, name):
    path, home = tmp_path / "forged.jsonl", tmp_path / "in"
    home.mkdir()
    file = b'"file":' + json.dumps(name).encode()
    path.write_bytes(
        forged(written, lambda at, raw: raw.replace(b'"file":""', file) if at == 1 else raw)
    )
    study, database, _ = log.load(path, home / "study.db", lambda: 0)
    database.close()
    assert all(item.file.resolve().is_relative_to(home) for item in study.items)


def test_a_line_without_an_end_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(log, "MAX_LINE_BYTES", 1000)
    (tmp_path / "long.jsonl").write_bytes(b"x" * 5000)
    with pytest.raises(log.BadLog, match="Line 1 of the log: the line is truncated"):
        log.load(tmp_path / "long.jsonl", tmp_path / "study.db", lambda: 0)
