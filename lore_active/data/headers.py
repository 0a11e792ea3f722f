"""The names that columns of answers may have, in files and in frames."""

from __future__ import annotations

import re

# The names that each column may have, the usual one first. Case, spaces and punctuation do not
# count. Nearer and farther are told outright, or the two options and which of them was chosen.
ROLES: dict[str, tuple[str, ...]] = {
    "anchor": (
        *("anchor", "head", "center", "centre", "target", "query"),
        *("reference", "ref", "probe", "standard"),
    ),
    "nearer": (
        *("nearer", "near", "winner", "closer", "close", "chosen", "selected"),
        *("more_similar", "similar", "positive"),
    ),
    "farther": (
        *("farther", "far", "loser", "further", "rejected", "unchosen", "unselected"),
        *("less_similar", "dissimilar", "negative"),
    ),
    "left": ("left", "option_1", "option_a", "choice_1", "choice_a"),
    "right": ("right", "option_2", "option_b", "choice_2", "choice_b"),
    "chosen": ("chosen", "answer", "winner", "choice", "selected", "response"),
}
ANSWER = ("anchor", "nearer", "farther")
SHOWN = ("anchor", "left", "right", "chosen")
QUESTION = ("anchor", "left", "right")
# Sets that are taken first, so that a file with further columns is read as its program meant it.
FIRST = (
    ("anchor", "nearer", "farther"),
    ("head", "winner", "loser"),
    ("anchor", "left", "right", "chosen"),
    ("center", "left", "right", "answer"),
    ("head", "left", "right", "winner"),
)
# Names of the items that other columns give as numbers: Salmon's, then tripletTools'.
NAMES = (("head_filename", "winner_filename", "loser_filename"), FIRST[3])
WEIGHT = ("weight", "weights", "sample_weight")
# Which trial a comparison belongs to, and who answered it.
TRIAL = ("trial", "trial_id", "trial_number")
PARTICIPANT = (
    *("participant", "participant_id", "worker_id", "worker", "subject", "subject_id", "puid"),
)
# Rows with these cells are not judgements of similarity that a model should fit.
SET_ASIDE = {
    "purpose": ("practice", "catch"),
    "samplealg": ("check", "catch", "practice"),
    "excluded": ("1", "true"),
    "takenout": ("1", "true"),
}
# Rows of programs that answered in people's place: data, but not about people.
SIMULATED = "simulated"
SIMULATED_MARKS = ("1", "true")


def known_headers() -> str:
    """Every column that is understood, in one sentence."""

    def also(role: str) -> str:
        first, *others = ROLES[role]
        return f"{first} (or {', '.join(others)})"

    told = [also(role) for role in ("anchor", "nearer", "farther", "left", "right", "chosen")]
    return (
        f"Understood are {told[0]}, {told[1]} and {told[2]}; or anchor, {told[3]}, {told[4]} and "
        f"{told[5]}"
    )


def normal(name: str) -> str:
    """A column's name without what does not count."""
    return re.sub(r"[\W_]+", "", str(name)).casefold()
