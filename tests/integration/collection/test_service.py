"""Actions of participants: entries, trials, exits, and what must never happen."""

from __future__ import annotations

import json
import sqlite3
import threading
from dataclasses import replace

import pytest

from server.collection.screens import CONTINUED, Rejected, Welcome
from server.collection.service import QuestionNotFound, UnknownParticipant
from tests.support.open_study import SIDES, Desk

SHORT = "[session]\ntrials = 6\npractice = 0\nbreak_every = 0\nfeedback = false\n"


@pytest.fixture
def desk(tmp_path, request):
    toml = getattr(request, "param", SHORT)
    opened = Desk(tmp_path / "words", toml)
    yield opened
    opened.close()


def finish(desk, stage):
    for _ in range(200):
        if stage.kind not in ("trial", "practice"):
            return stage
        stage = desk.answer(stage)
    raise AssertionError("never finished")


FULL = """
[session]
trials = 10
practice = 2
break_every = 4
catch = 0.2
repeat = 0.2
random = 0.1
[completion]
code = "OK1"
redirect = "https://example.org/done?pid=[PROLIFIC_PID]&s=[SESSION_ID]"
declined_code = "NO1"
full_code = "FULL1"
"""


@pytest.mark.parametrize("desk", [FULL], indirect=True)
def test_the_whole_way(desk):
    came = desk.service.arrive({"PROLIFIC_PID": "a b&c", "SESSION_ID": "s1"}, None, "agent")
    stage = desk.service.visit(came.token)
    assert stage.kind == "consent"
    stage = desk.service.consent(came.token, True)
    assert stage.kind == "instructions"
    stage = desk.service.begin(came.token)
    kinds = []
    for _ in range(40):
        kinds.append(stage.kind)
        if stage.kind in CONTINUED:
            stage = desk.service.rest(came.token, stage.done)
        elif stage.kind in ("practice", "trial"):
            stage = desk.service.answer(came.token, stage.trial.token, (0,))
        else:
            break
    practice, four = ["practice", "practice_feedback"], ["trial"] * 4
    assert kinds == [
        *practice * 2, "ready", *four, "break", *four, "break", "trial", "trial", "feedback",
    ]  # fmt: skip
    stage = desk.service.feedback(came.token, "fine")
    assert (stage.kind, stage.code) == ("finished", "OK1")
    assert stage.address == "https://example.org/done?pid=a%20b%26c&s=s1"
    purposes = dict(desk.rows("SELECT purpose, count(*) FROM queries WHERE slot >= 0 GROUP BY 1"))
    assert purposes["catch"] == 2
    assert purposes["repeat"] == 2
    assert desk.rows("SELECT feedback FROM participants") == [("fine",)]


def test_practice_says_what_was_right(tmp_path):
    desk = Desk(tmp_path / "words", "[session]\npractice = 2\n")
    stage = desk.new_participant()
    trial = stage.trial
    token = stage.participant
    right = (trial.options.index(trial.anchor),)
    reply = desk.service.answer(token, trial.token, right)
    assert (reply.kind, reply.note) == ("practice_feedback", "practice_right")
    assert reply.trial == replace(trial, chosen=right, expected=right)
    again = desk.service.visit(token)
    assert replace(again, visit=reply.visit) == reply, "a reload shows the same"
    stage = desk.service.rest(token, reply.done)
    assert stage.kind == "practice" and stage.trial.token != trial.token
    trial = stage.trial
    right = (trial.options.index(trial.anchor),)
    wrong = (1 - right[0],)
    last = desk.service.answer(token, trial.token, wrong)
    assert (last.kind, last.note) == ("practice_feedback", "practice_wrong")
    assert (last.trial.chosen, last.trial.expected) == (wrong, right)
    assert desk.service.rest(token, reply.done) == last, "continuing twice skips nothing"
    stage = desk.service.rest(token, last.done)
    assert (stage.kind, stage.note) == ("ready", "")
    assert desk.service.rest(token, last.done) == stage
    assert desk.service.rest(token, stage.done).kind == "trial"
    desk.close()


@pytest.mark.parametrize(
    ("side", "note"), [("skip", "practice_skipped"), ("timeout", "practice_timed_out")]
)
def test_practice_without_a_choice_shows_what_most_people_choose(tmp_path, side, note):
    toml = "[session]\npractice = 1\n[trial]\nskip = true\ntimeout_ms = 1000\n"
    desk = Desk(tmp_path / "words", toml)
    stage = desk.new_participant()
    desk.wait(1000)
    reply = desk.service.answer(stage.participant, stage.trial.token, side)
    assert (reply.kind, reply.note) == ("practice_feedback", note)
    nearer = stage.trial.options.index(stage.trial.anchor)
    assert (reply.trial.chosen, reply.trial.expected) == ((), (nearer,))
    assert desk.service.rest(stage.participant, reply.done).kind == "ready"
    desk.close()


@pytest.mark.parametrize("desk", [FULL], indirect=True)
def test_declining_can_be_undone_until_a_code_was_shown(desk):
    came = desk.service.arrive({})
    desk.service.visit(came.token)
    stage = desk.service.consent(came.token, False)
    assert (stage.kind, stage.code, stage.undecided, stage.held) == ("declined", "", True, True)
    assert desk.service.consent(came.token, True).kind == "declined", "not by an old form"
    assert desk.service.reconsider(came.token).kind == "consent"
    assert desk.rows("SELECT kind, participant FROM events") == [("reconsider", 1)]
    assert desk.service.reconsider(came.token).kind == "consent"
    desk.service.consent(came.token, False)
    left = desk.service.leave(came.token)
    assert (left.kind, left.code, left.undecided, left.held) == ("declined", "NO1", False, False)
    assert desk.service.reconsider(came.token) == left == desk.service.leave(came.token)
    assert desk.rows("SELECT count(*) FROM queries") == [(0,)]


def test_declining_without_a_code_can_be_undone_while_quota_is_left(tmp_path):
    desk = Desk(tmp_path / "words", "[session]\ntrials = 10\n[budget]\nparticipants = 1\n")
    first, second = (desk.service.arrive({}) for _ in range(2))
    assert isinstance(first, Welcome) and second.kind == "full"
    stage = desk.service.consent(first.token, False)
    assert (stage.undecided, stage.held) == (True, False)
    assert desk.rows("SELECT finished_at IS NULL FROM participants") == [(0,)]
    second = desk.service.arrive({})
    assert isinstance(second, Welcome), "the place was free"
    assert desk.service.reconsider(first.token).kind == "full", "and now it is not"
    assert desk.service.visit(first.token).kind == "full"
    desk.close()


HURRY = "[session]\ntrials = 100\npractice = 0\nbreak_every = 0\nfeedback = false\n"


def paced(desk, gap_ms):
    """For a participant who answers this fast: their number of answers at each reminder."""
    stage, reminded = desk.new_participant(), []
    while stage.kind in ("trial", "slow_down"):
        if stage.kind == "slow_down":
            reminded.append(stage.done)
            assert desk.service.visit(stage.participant).kind == "slow_down", "after a reload, too"
            stage = desk.service.rest(stage.participant, stage.done)
        else:
            desk.wait(gap_ms)
            stage = desk.service.answer(stage.participant, stage.trial.token, (0,))
    return reminded


def test_who_hurries_is_asked_to_take_their_time_now_and_then(tmp_path):
    desk = Desk(tmp_path / "words", HURRY)
    assert paced(desk, 700) == []
    assert paced(desk, 300) == [9, 29], "twice at most"
    events = desk.rows("SELECT participant, detail FROM events WHERE kind = 'slow_down'")
    assert events == [(2, '{"done": 9, "median_ms": 300}'), (2, '{"done": 29, "median_ms": 300}')]
    assert desk.rows("SELECT count(*) FROM answers") == [(200,)]
    desk.close()
    never = Desk(tmp_path / "never", HURRY + "rush_ms = 0\n")
    assert paced(never, 10) == []
    never.close()


def test_a_time_limit_or_a_stopped_clock_is_not_fast_answering(tmp_path):
    short = Desk(tmp_path / "short", HURRY + "[trial]\ntimeout_ms = 400\n")
    assert paced(short, 300) == []
    short.close()
    still = Desk(tmp_path / "still", HURRY)
    assert paced(still, 0) == []
    still.close()


def test_minutes_left_follow_their_own_pace(tmp_path):
    desk = Desk(tmp_path / "words", HURRY)
    stage = desk.new_participant()
    for done in range(30):
        assert (stage.minutes is None) == (done < 5)
        # A single long pause does not change the estimate.
        desk.wait(600_000 if done == 12 else 6_000)
        stage = desk.service.answer(stage.participant, stage.trial.token, (0,))
    assert stage.minutes == pytest.approx(7.0)
    desk.close()


def test_the_same_answer_again_changes_nothing(desk):
    stage = desk.new_participant()
    first = desk.answer(stage, "left")
    for side in ("left", "right", "skip"):
        assert desk.answer(stage, side) == first
    assert desk.rows(SIDES) == [("left",)]


def test_one_cannot_answer_ahead(desk):
    """The question after the next is leased for preloading, but its turn has not come."""
    stage = desk.new_participant()
    ((ahead,),) = desk.rows("SELECT token FROM queries WHERE slot = 1")
    following = desk.service.answer(stage.participant, ahead, (0,))
    assert following.trial == stage.trial
    assert desk.rows("SELECT count(*) FROM answers") == [(0,)]


def test_one_cannot_answer_for_another(desk):
    one, other = desk.new_participant(), desk.new_participant()
    with pytest.raises(QuestionNotFound):
        desk.service.answer(one.participant, other.trial.token, (0,))
    with pytest.raises(QuestionNotFound):
        desk.service.answer(one.participant, "nonsense", (0,))
    with pytest.raises(UnknownParticipant):
        desk.service.answer("nonsense", one.trial.token, (0,))


def test_coming_back_resumes_at_the_same_trial(desk):
    stage = desk.new_participant(PROLIFIC_PID="abc")
    stage = desk.answer(stage)
    again = desk.service.arrive({"PROLIFIC_PID": "abc"})
    assert again == Welcome(stage.participant)
    assert desk.service.visit(again.token).trial == stage.trial


def test_the_browser_remembers_participants_without_an_id(desk):
    stage = desk.new_participant()
    assert desk.service.arrive({}, stage.participant) == Welcome(stage.participant)
    assert desk.service.arrive({}) != Welcome(stage.participant)
    # A named link wins over what the browser remembers: shared computers exist.
    named = desk.service.arrive({"puid": "77"}, stage.participant)
    assert named != Welcome(stage.participant)


def test_a_second_session_of_the_same_participant_is_refused(desk):
    finish(desk, desk.new_participant(PROLIFIC_PID="abc", SESSION_ID="1"))
    again = desk.service.arrive({"PROLIFIC_PID": "abc", "SESSION_ID": "1"})
    assert isinstance(again, Welcome)
    assert desk.service.visit(again.token).kind == "finished"
    other = desk.service.arrive({"PROLIFIC_PID": "abc", "SESSION_ID": "2"})
    assert other == Rejected("already")


def test_mturk_preview_creates_no_participant(desk):
    entry = {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE", "workerId": "w"}
    assert desk.service.arrive(entry) == Rejected("preview")
    assert desk.rows("SELECT count(*) FROM participants") == [(0,)]


# ---- exits --------------------------------------------------------------------------------------

ROOM = SHORT + "idle_minutes = 10\n[budget]\nparticipants = 1\n"
EXITS = ("declined", "full", "expired", "already")
FINISHER = {"code": "DONE", "redirect": "https://panel.example/done?who=[PROLIFIC_PID]"}
OWN = {
    f"{name}_{what}": f"https://panel.example/{name}" if what == "redirect" else name.upper()
    for name in EXITS
    for what in ("code", "redirect")
}


def ways(desk):
    """Participants who leave without having finished, by exit."""
    gone = {}
    came = desk.service.arrive({"PROLIFIC_PID": "no"})
    desk.service.consent(came.token, False)
    gone["declined"] = desk.service.leave(came.token)
    unsure = desk.service.arrive({"PROLIFIC_PID": "unsure"})
    desk.now += 11 * 60_000
    away = desk.new_participant(PROLIFIC_PID="away")
    desk.now += 11 * 60_000
    finish(desk, desk.new_participant(PROLIFIC_PID="one", SESSION_ID="1"))
    # The only place is taken.
    gone["never consented"] = desk.service.visit(unsure.token)
    gone["never consented, agrees late"] = desk.service.consent(unsure.token, True)
    gone["expired"] = desk.service.visit(away.participant)
    gone["answers late"] = desk.service.answer(away.participant, away.trial.token, (0,))
    gone["full"] = desk.service.arrive({"PROLIFIC_PID": "late"})
    gone["already"] = desk.service.arrive({"PROLIFIC_PID": "one", "SESSION_ID": "2"})
    desk.control.stop("test")
    gone["stopped"] = desk.service.arrive({"PROLIFIC_PID": "later"})
    return gone


@pytest.mark.parametrize("own", [{}, OWN], ids=["finishers' only", "each its own"])
def test_no_exit_but_the_finished_one_gives_the_finishers_code_or_link(tmp_path, own):
    table = "".join(f'{key} = "{value}"\n' for key, value in {**FINISHER, **own}.items())
    desk = Desk(tmp_path / "words", f"{ROOM}[completion]\n{table}")
    kinds = {
        "never consented": "full",
        "never consented, agrees late": "full",
        "answers late": "expired",
        "stopped": "full",
    }
    for how, found in ways(desk).items():
        kind = kinds.get(how, how)
        link = own.get(f"{kind}_redirect", "")
        assert (found.kind, found.code, found.address) == (
            kind,
            own.get(f"{kind}_code", ""),
            link,
        ), how
    again = desk.service.arrive({"PROLIFIC_PID": "one", "SESSION_ID": "1"})
    done = desk.service.visit(again.token)
    assert (done.kind, done.code) == ("finished", "DONE")
    assert done.address == "https://panel.example/done?who=one"
    desk.close()


# ---- the study's rules --------------------------------------------------------------------------

LIMIT = SHORT + "[trial]\ntimeout_ms = 5000\n"


@pytest.mark.parametrize("desk", [SHORT, LIMIT], indirect=True)
def test_a_skip_that_the_study_does_not_offer_is_not_taken(desk):
    stage = desk.new_participant()
    desk.now += 6000
    kept = desk.answer(stage, "skip")
    assert (kept.kind, kept.trial, kept.note) == ("trial", stage.trial, "not_taken")
    assert desk.rows("SELECT count(*) FROM answers") == [(0,)]
    assert desk.answer(stage, "right").note == ""
    assert desk.rows(SIDES) == [("right",)]


@pytest.mark.parametrize("desk", [SHORT + "[trial]\nskip = true\n"], indirect=True)
def test_a_skip_that_the_study_offers_is_taken(desk):
    assert desk.answer(desk.new_participant(), "skip").note == ""
    assert desk.rows(SIDES) == [("skip",)]


def test_without_a_time_limit_time_is_never_up(desk):
    stage = desk.new_participant()
    desk.now += 3_600_000
    kept = desk.answer(stage, "timeout")
    assert (kept.trial, kept.note) == (stage.trial, "not_taken")
    assert desk.rows("SELECT count(*) FROM answers") == [(0,)]


@pytest.mark.parametrize("desk", [LIMIT], indirect=True)
def test_time_is_up_by_the_servers_clock_and_not_before(desk):
    stage = desk.new_participant()
    # The second question was leased with the first, but its time begins when its turn comes.
    desk.now += 4000
    stage = desk.answer(stage)
    desk.now += 4000
    kept = desk.answer(stage, "timeout")
    assert (kept.trial, kept.note) == (stage.trial, "not_taken")
    desk.now += 1000
    following = desk.answer(stage, "timeout")
    assert (following.kind, following.note) == ("trial", "timed_out")
    assert desk.rows(SIDES) == [("left",), ("timeout",)]
    assert desk.answer(stage, "timeout").note == "", "the same once more is no time-out of the next"


@pytest.mark.parametrize("desk", [LIMIT], indirect=True)
def test_a_clock_that_was_set_back_blocks_no_participant(desk):
    stage = desk.new_participant()
    desk.now -= 3_600_000
    assert desk.answer(stage, "timeout").note == "timed_out"


# ---- several windows ----------------------------------------------------------------------------


def test_the_newest_window_wins_and_the_older_one_stores_nothing(desk):
    old = desk.new_participant()
    new = desk.service.visit(old.participant)
    reply = desk.service.answer(old.participant, old.trial.token, (0,), visit=old.visit)
    assert (reply.kind, reply.note) == ("elsewhere", "not_taken")
    assert desk.rows("SELECT count(*) FROM answers") == [(0,)]
    desk.service.answer(new.participant, new.trial.token, (1,), visit=new.visit)
    assert desk.rows(SIDES) == [("right",)], "what the newest window said"


def test_an_answer_from_before_the_newer_window_opened_is_kept(desk):
    old = desk.new_participant()
    desk.service.answer(old.participant, old.trial.token, (0,), visit=old.visit)
    new = desk.service.visit(old.participant)
    assert new.done == 1
    again = desk.service.answer(old.participant, old.trial.token, (0,), visit=old.visit)
    assert (again.kind, again.note) == ("elsewhere", ""), "sent again, as after a lost reply"
    assert desk.rows(SIDES) == [("left",)]


def test_no_page_of_an_older_window_takes_a_step(tmp_path):
    toml = "[session]\ntrials = 4\npractice = 1\nbreak_every = 2\n"
    desk = Desk(tmp_path / "words", toml)
    service, seen = desk.service, []
    token = service.arrive({}).token
    stage = service.visit(token)
    for _ in range(20):
        old, stage = stage, service.visit(token)
        seen.append(stage.kind)
        act = {
            "consent": lambda visit: service.consent(token, True, visit),
            "instructions": lambda visit: service.begin(token, visit),
            "ready": lambda visit, done=stage.done: service.rest(token, done, visit),
            "break": lambda visit, done=stage.done: service.rest(token, done, visit),
            "practice_feedback": lambda visit, done=stage.done: service.rest(token, done, visit),
            "practice": lambda visit, trial=stage.trial: service.answer(
                token, trial.token, (0,), visit
            ),
        }.get("practice" if stage.kind == "trial" else stage.kind)
        if act is None:
            break
        reply = act(old.visit)
        assert (reply.kind, reply.note) == ("elsewhere", "not_taken"), stage.kind
        assert service.look(token, stage.visit) == stage, "nothing has changed"
        assert service.look(token, old.visit).kind == "elsewhere"
        following = act(stage.visit)
        reply = act(old.visit)
        if following.kind != "feedback":
            assert (reply.kind, reply.note) == ("elsewhere", ""), "it was done already"
        stage = following
    assert seen == [
        *("consent", "instructions", "practice", "practice_feedback", "ready"),
        *("trial", "trial", "break", "trial", "trial", "feedback"),
    ]
    # A comment is accepted from either window, and so is the step to the exit.
    assert service.feedback(token, "from an older window").kind == "finished"
    assert service.look(token, 1).kind == "finished"
    assert desk.rows("SELECT feedback FROM participants") == [("from an older window",)]
    desk.close()


def test_waiting_in_two_windows_does_not_make_the_older_one_the_newest(desk):
    old = desk.new_participant()
    desk.control.pause("test")
    new = desk.service.visit(old.participant)
    assert new.kind == "paused"
    for _ in range(3):
        assert desk.service.look(old.participant, old.visit).kind == "elsewhere"
        assert desk.service.look(new.participant, new.visit) == new
    desk.control.resume("test")
    assert desk.service.look(new.participant, new.visit).trial == old.trial
    assert desk.service.look(old.participant, old.visit).kind == "elsewhere"


def test_pause_holds_the_next_question_and_keeps_the_answer(desk):
    stage = desk.new_participant()
    desk.control.pause("test")
    assert desk.answer(stage).kind == "paused"
    assert desk.rows("SELECT count(*) FROM answers") == [(1,)]
    assert desk.service.arrive({}) == Rejected("paused")
    desk.control.resume("test")
    assert desk.service.visit(stage.participant).kind == "trial"


@pytest.mark.parametrize("desk", [FULL], indirect=True)
def test_at_a_stop_participants_under_way_finish_and_new_ones_are_refused(desk):
    stage = desk.new_participant()
    desk.control.stop("test")
    assert desk.service.arrive({}) == Rejected("full", "FULL1", "")
    while stage.kind in ("practice", "trial"):
        stage = desk.answer(stage)
    assert stage.kind == "feedback"
    desk.control.reopen("test")
    assert isinstance(desk.service.arrive({}), Welcome)


def test_a_late_answer_is_kept_and_marked(desk):
    stage = desk.new_participant()
    desk.now += desk.study.settings.session.lease_seconds * 1000 + 1
    desk.answer(stage)
    assert desk.rows("SELECT late FROM answers") == [(1,)]


def test_reloading_renews_the_lease(desk):
    stage = desk.new_participant()
    desk.now += desk.study.settings.session.lease_seconds * 1000 + 1
    stage = desk.service.visit(stage.participant)
    desk.answer(stage)
    assert desk.rows("SELECT late FROM answers") == [(0,)]


BUDGET = SHORT + "idle_minutes = 10\n[budget]\nanswers = 16\n"


@pytest.mark.parametrize("desk", [BUDGET], indirect=True)
def test_the_quota_is_reserved_not_just_spent(desk):
    stages = [desk.new_participant() for _ in range(3)]
    assert [stage.trials for stage in stages] == [6, 6, 4]
    assert desk.service.arrive({}).kind == "full"
    for stage in stages:
        assert finish(desk, stage).kind == "finished"
    assert desk.rows("SELECT count(*) FROM answers") == [(16,)]


@pytest.mark.parametrize("desk", [BUDGET], indirect=True)
def test_quota_reserved_for_dropouts_is_given_to_others(desk):
    left, *_ = [desk.new_participant() for _ in range(3)]
    desk.answer(left)
    desk.now += 11 * 60_000
    stages = [desk.new_participant() for _ in range(3)]
    assert sum(stage.trials for stage in stages) == 15
    # The budget has no room left for the participant who returns.
    assert desk.service.visit(left.participant).kind == "expired"
    for stage in stages:
        finish(desk, stage)
    assert desk.rows("SELECT count(*) FROM answers") == [(16,)]


@pytest.mark.parametrize("desk", [BUDGET], indirect=True)
def test_a_returning_participant_continues_while_quota_is_left(desk):
    left = desk.new_participant()
    stage = desk.answer(left)
    desk.now += 11 * 60_000
    back = desk.service.visit(left.participant)
    assert back.trial == stage.trial
    assert [desk.new_participant().trials, desk.new_participant().trials] == [6, 4]


PARTICIPANTS = SHORT + "[budget]\nparticipants = 5\n"


@pytest.mark.parametrize("desk", [PARTICIPANTS], indirect=True)
def test_concurrent_arrivals_never_exceed_the_participant_quota(desk):
    came = []

    def arrive():
        came.append(desk.service.arrive({}))

    threads = [threading.Thread(target=arrive) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(one, Welcome) for one in came) == 5
    assert sum(isinstance(one, Rejected) for one in came) == 35


def test_no_participant_gets_a_triplet_twice(tmp_path):
    toml = "[session]\ntrials = 11\npractice = 0\ncatch = 0\nrepeat = 0\nbreak_every = 0\n"
    desk = Desk(tmp_path / "few", toml, items=4)
    stage = finish(desk, desk.new_participant())
    rows = desk.rows("SELECT key FROM queries WHERE slot >= 0")
    assert len(rows) == len(set(rows)) == 11, "there are only 12 questions about 4 items"
    assert stage.kind == "feedback"
    desk.close()


def test_more_trials_than_questions_end_in_known_ones(tmp_path):
    toml = "[session]\ntrials = 20\npractice = 0\ncatch = 0\nrepeat = 0\nbreak_every = 0\n"
    desk = Desk(tmp_path / "few", toml, items=4)
    finish(desk, desk.new_participant())
    purposes = dict(desk.rows("SELECT purpose, count(*) FROM queries GROUP BY 1"))
    assert purposes == {"random": 12, "catch": 8}
    desk.close()


def test_sides_are_balanced_and_repeats_are_swapped(tmp_path):
    toml = "[session]\ntrials = 80\npractice = 0\nrepeat = 0.2\nbreak_every = 0\n"
    desk = Desk(tmp_path / "words", toml)
    finish(desk, desk.new_participant())
    rows = desk.rows(
        "SELECT options ->> 0 < options ->> 1 FROM queries "
        "WHERE slot >= 0 AND purpose IN ('random', 'active')"
    )
    assert 0.35 < sum(row[0] for row in rows) / len(rows) < 0.65
    pairs = desk.rows(
        "SELECT q.options, o.options FROM queries q JOIN queries o ON o.id = q.repeats"
    )
    assert len(pairs) == 16
    assert all(json.loads(now) == json.loads(then)[::-1] for now, then in pairs)
    desk.close()


def test_answers_cannot_be_changed_or_deleted(desk):
    desk.answer(desk.new_participant())
    raw = sqlite3.connect(desk.database.path)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        raw.execute("UPDATE answers SET chosen = '[0]'")
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        raw.execute("DELETE FROM answers")
    raw.close()


def test_entry_parameters_are_stored_but_bounded(desk):
    desk.service.arrive({f"p{number}": "x" * 1000 for number in range(100)})
    ((entry,),) = desk.rows("SELECT entry FROM participants")
    assert len(entry) < 12_000
