"""The activity log says what happened in words, of every kind of event, and by whom."""

from __future__ import annotations

import pytest

from docs.reference.meanings import KINDS
from server.status.activity import PHRASES, Activity, described, is_automatic
from server.store.summaries import EventRow


def event(kind, who="Ada", participant=None, **detail):
    return EventRow(1, 1_000, who, kind, participant, detail)


def test_every_kind_of_event_has_its_words():
    assert set(PHRASES) == {kind for kinds in KINDS for kind in kinds.split(", ")}


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (event("pause", reason="lunch"), Activity("Study paused", "Ada", "lunch")),
        (
            event("stop", "stopping rule", reason="Settled."),
            Activity("Study stopped", "the stopping rule", "Settled."),
        ),
        (event("exclude", participant=7, reason=""), Activity("P7 excluded", "Ada", "")),
        (
            event("slow_down", "participant", 12, done=1, median_ms=348),
            Activity(
                "P12 was asked to take their time after 1 trial (median of the last ones: 0.3 s)",
                "",
                "",
            ),
        ),
        (
            event("budget", answers=1, participants=0),
            Activity("Budget set to 1 answer and any number of participants", "Ada", ""),
        ),
        (
            event("budget", answers=4000, participants=20),
            Activity("Budget set to 4,000 answers and 20 participants", "Ada", ""),
        ),
        (
            event("rehearsal", "lore-active", kept="", demo=True),
            Activity("Demonstration, deleted when the server ends", "", ""),
        ),
        (
            event("forget", "lore-active forget", 3, answers="kept"),
            Activity("The identity of P3 was erased; the answers were kept", "", ""),
        ),
        (
            event("backup", "backup", problem="The disk is full."),
            Activity("Backups fail", "", "The disk is full."),
        ),
        (event("link", label="colleague"), Activity("View-only link created", "Ada", "colleague")),
        (
            event("import", "import", answers=60, file="pilot.csv"),
            Activity("60 imported answers added (pilot.csv)", "", ""),
        ),
        (event("of_tomorrow"), Activity("Of tomorrow", "Ada", "")),
    ],
    ids=lambda one: one.kind if isinstance(one, EventRow) else "",
)
def test_an_event_in_words(one, expected):
    assert described(one) == expected


def test_who_is_named_is_an_experimenter():
    assert not is_automatic("Ada")
    assert not is_automatic("")
    assert all(
        is_automatic(one) for one in ("worker", "participant", "lore-active", "lore-active forget")
    )
