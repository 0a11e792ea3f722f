"""Accepted names of the columns of answers, in files and in data frames."""

from __future__ import annotations

import re

# Accepted names of each column, the standard one first; case, spaces and punctuation are ignored.
# Either nearer and farther are given, or the two options and which of them was chosen.
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
# Sets that take precedence, so that a file with further columns is read as its program intended.
FIRST = (
    ("anchor", "nearer", "farther"),
    ("head", "winner", "loser"),
    ("anchor", "left", "right", "chosen"),
    ("center", "left", "right", "answer"),
    ("head", "left", "right", "winner"),
)
# Columns with the labels of items that other columns give as numbers: Salmon's, tripletTools'.
NAMES = (("head_filename", "winner_filename", "loser_filename"), FIRST[3])
WEIGHT = ("weight", "weights", "sample_weight")
# Trial to which a comparison belongs, and the participant who answered it.
TRIAL = ("trial", "trial_id", "trial_number")
PARTICIPANT = (
    *("participant", "participant_id", "worker_id", "worker", "subject", "subject_id", "puid"),
    "agent_id",
)
# Columns of trials with several comparisons, each row one trial. Options and picks are numbered:
# reference_1, reference_2, …
OPTION_PREFIXES = ("option", "reference", "ref", "image", "stimulus", "item", "object")
CHOSEN_PREFIXES = ("chosen", "picked", "selected")
CHOICE_OF_ODD = ("choice", "odd_one_out", "odd_one", "odd")
# An array with the query and its references, and how many of them were picked (psiz).
STIMULUS_SET = ("stimulus_set",)
NUMBER_OF_PICKS = ("n_select", "n_selected", "n_chosen", "n_picked")
RANKED = ("is_ranked", "ranked")
MASK_ZERO = ("mask_zero",)
KIND = ("kind",)
# Rows with these cells are omitted: they are not similarity judgements that a model should fit.
LEFT_OUT = {
    "purpose": ("practice", "catch"),
    "samplealg": ("check", "catch", "practice"),
    "excluded": ("1", "true"),
    "removed": ("1", "true"),
    # `removed` in files of earlier versions.
    "takenout": ("1", "true"),
}
# Marks rows that were answered by simulated participants.
SIMULATED = "simulated"
SIMULATED_MARKS = ("1", "true")


def known_headers() -> str:
    """Describe the accepted columns in one sentence."""

    def also(role: str) -> str:
        first, *others = ROLES[role]
        return f"{first} (or {', '.join(others)})"

    names = [also(role) for role in ("anchor", "nearer", "farther", "left", "right", "chosen")]
    return (
        f"Accepted columns: {names[0]}, {names[1]} and {names[2]}; or anchor, {names[3]}, "
        f"{names[4]} and {names[5]}; or, of trials with several options, query, reference_1, …, "
        "n_select and is_ranked; or image_1, image_2, image_3 and choice (of the odd one)"
    )


def normal(name: str) -> str:
    """Normalise the name of a column: case, spaces and punctuation are removed."""
    return re.sub(r"[\W_]+", "", str(name)).casefold()
