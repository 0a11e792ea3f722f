"""The kind of a study's questions: its validation, and the question that goes with it."""

from __future__ import annotations

from collections.abc import Iterator

from lore_active.questions.kinds import FIXED, MAX_OPTIONS, MIN_OPTIONS, Kind
from server.study.config import Trial

Contradiction = tuple[str, str, str]
NUMBERS = (
    *("no", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven"),
)
# By kind; {pick} is the number of options to be picked, and other kinds with one pick are worded
# like a choice.
QUESTIONS = {
    "triplet": "Which of the two is more like the one above?",
    "choose 1": "Which of these is most like the one above?",
    "choose": "Which {pick} of these are most like the one above?",
    "rank": "Which {pick} of these are most like the one above? Choose the most similar one first.",
    "odd-one-out": "Which of the three is least like the other two?",
}


def default_question(kind: Kind) -> str:
    """Return the question of a study that does not word its own."""
    single = kind.name in ("choose", "rank") and kind.pick == 1
    return QUESTIONS["choose 1" if single else kind.name].format(pick=NUMBERS[kind.pick])


def kind_problems(trial: Trial) -> Iterator[Contradiction]:
    """Yield (key, value, rule) of numbers of options and picks that the kind does not have."""
    if trial.kind in FIXED:
        for name, value, fixed in zip(
            ("options", "pick"), (trial.options, trial.pick), FIXED[trial.kind], strict=True
        ):
            if value not in (0, fixed):
                rule = f'must be {fixed}, or omitted, where trial.kind is "{trial.kind}"'
                yield f"trial.{name}", str(value), rule
        return
    if trial.options < MIN_OPTIONS:
        rule = f'must be from {MIN_OPTIONS} to {MAX_OPTIONS} where trial.kind is "{trial.kind}"'
        yield "trial.options", _given(trial.options), rule
        return
    if not 1 <= trial.pick < trial.options:
        rule = (
            f'must be from 1 to {trial.options - 1} where trial.kind is "{trial.kind}", below '
            f"trial.options ({trial.options})"
        )
        yield "trial.pick", _given(trial.pick), rule


def item_problems(kind: Kind, items: int) -> Iterator[Contradiction]:
    """Yield what is wrong if there are too few items for one question."""
    if items < kind.items:
        shown = f"{kind.options} options" + " and an anchor" * kind.has_anchor
        yield (
            "trial.options",
            str(kind.options),
            f"a question shows {shown}, and there are only {items} items",
        )


def _given(value: int) -> str:
    return str(value) if value else "missing"
