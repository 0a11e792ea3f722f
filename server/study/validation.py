"""Validation across settings: empty texts, and values that contradict each other."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

from lore_active.stopping.sensitivity import MAX_SHARE, MIN_SHARE
from server.study.config import Study, kind_of
from server.study.kinds import default_question, kind_problems
from server.study.parsing import FILE, ParsedSettings
from server.study.problems import Problem, shown
from server.study.texts import Texts, texts_for

MAX_SPECIAL = 0.5
# Texts with placeholders.
PLACEHOLDERS = {
    "progress": ("done", "all"),
    "minutes_left": ("minutes",),
    "returning": ("seconds",),
    "image_name": ("letter",),
    "option_label": ("number",),
    "chosen_count": ("chosen", "pick"),
    "place": ("place",),
    "incomplete": ("pick",),
    "map_nearest": ("item", "other"),
}
# Less is too short to read the page and cancel.
MIN_RETURN_SECONDS = 5
UNFILLED = re.compile(r"\[\s*FILL[ _-]*IN\b[^\]]*\]?", re.IGNORECASE)
MAX_NAMED = 5
# As in the questions of the sample studies, which ask triplets.
ABOUT_TWO = re.compile(r"\bof the two\b", re.IGNORECASE)
# Headings, buttons and names of controls, without which a page cannot be used.
# fmt: off
NEVER_EMPTY = (
    "agree", "decline", "begin", "go_on", "send", "code", "redirect", "cant_tell",
    "try_again", "go_on_here", "play", "anchor_label", "left_label", "right_label",
    "consent_title", "instructions_title", "break_title", "feedback_title", "finished_title",
    "declined_title", "paused_title", "full_title", "expired_title", "unknown_title",
    "already_title", "elsewhere_title", "preview_title", "trouble_title", "ready_title",
    "error_title", "back", "example", "how_to_answer", "how_to_answer_touch", "your_choice",
    "usual_choice", "slow_down_title", "copy", "copied", "copy_failed", "returning", "stay",
    "debrief_title", "map_title", "map_list", "map_nearest", "changed_mind", "leave", "image_name",
    "option_label", "chosen_count", "place", "undo_first", "incomplete",
)
# fmt: on
# The host is fixed: an entry parameter, which anyone can forge, must not choose it.
ADDRESS = re.compile(
    r"https?://[\w.-]+(:[0-9]{1,5})?([/?#]([^\s\[\]<>\"\\]|\[[A-Za-z0-9_]+\])*)?", re.IGNORECASE
)
ADDRESS_RULE = (
    "must be a URL that starts with https:// or http://, "
    "with entry parameters as [NAME] only after the host"
)
# Exits other than finishing, and who takes them.
EXITS = {
    "declined": "participants who do not consent",
    "full": "participants who arrive when the study is full or stopped",
    "expired": "participants who were away when the study closed",
}


def contradictions(settings: ParsedSettings) -> Iterator[Problem]:
    """Yield contradictions between settings; keys already reported are skipped."""
    study = settings.study
    for key, value, rule in _problems(settings, study):
        if settings.valid(*key.replace(" + ", " ").split()):
            yield Problem(FILE, key, value, rule)


def cautions(study: Study) -> Iterator[str]:
    """Yield warnings about valid settings: unfinished or unfit texts, exits that lead nowhere."""
    yield from _unfinished(study)
    kind, question = kind_of(study.trial), study.trial.question
    if kind.options != 2 and ABOUT_TWO.search(question):
        yield (
            f"{FILE}: trial.question is {shown(question)}, but participants see {kind.options} "
            f"options ({kind.label}). If it is empty, they are asked: {default_question(kind)}"
        )
    out = study.completion
    for name, who in EXITS.items():
        code, redirect = f"{name}_code", f"{name}_redirect"
        if out.redirect and not getattr(out, code) and not getattr(out, redirect):
            yield (
                f"{FILE}: completion.{code} and completion.{redirect} are empty, so {who} get "
                "neither a code nor a link back to the recruitment site."
            )


def _unfinished(study: Study) -> Iterator[str]:
    """Yield texts with placeholders to fill in, and texts that were not translated."""
    texts = {f"texts.{name}": getattr(study.texts, name) for name in study.texts.__struct_fields__}
    shown_to_participants = {"title": study.title, "trial.question": study.trial.question} | texts
    for key, text in shown_to_participants.items():
        gaps = UNFILLED.findall(text)
        if gaps:
            first = f"{len(gaps)} places, the first of them {gaps[0]}" if gaps[1:] else gaps[0]
            yield f"{FILE}: {key} still has something to fill in: {first}."
    defaults = texts_for(Texts(), kind_of(study.trial))
    english = [
        key
        for key, text in texts.items()
        if text and text == getattr(defaults, key[len("texts.") :])
    ]
    if study.language.lower().partition("-")[0] != "en" and english:
        more = f" and {len(english) - MAX_NAMED} more" if english[MAX_NAMED:] else ""
        yield (
            f"{FILE}: language is {shown(study.language)}, but {len(english)} texts are still the "
            f"English ones: {', '.join(english[:MAX_NAMED])}{more}."
        )


def _problems(settings: ParsedSettings, study: Study) -> Iterator[tuple[str, str, str]]:
    if "title" in settings.given and not study.title.strip():
        yield "title", shown(study.title), "must not be blank"
    if settings.valid("trial.kind", "trial.options", "trial.pick"):
        yield from kind_problems(study.trial)
    yield from _texts(study)
    yield from _addresses(study)
    yield from _session(settings, study)
    if 0.0 < study.stopping.smallest_dimension < MIN_SHARE:
        value = shown(study.stopping.smallest_dimension)
        rule = f"must be from {MIN_SHARE} to {MAX_SHARE}, or 0 for the default"
        yield "stopping.smallest_dimension", value, rule
    yield from _pay(study)


def _session(settings: ParsedSettings, study: Study) -> Iterator[tuple[str, str, str]]:
    session, trial, budget = study.session, study.trial, study.budget
    special = session.random + session.catch + session.repeat
    if special > MAX_SPECIAL + 1e-9:
        yield (
            "session.random + session.catch + session.repeat",
            f"{special:g}",
            f"must be at most {MAX_SPECIAL:g}, so that the learner selects most questions "
            '(for a study of random questions set learning.selector to "random")',
        )
    if 0 < trial.timeout_ms <= trial.min_view_ms:
        yield (
            "trial.timeout_ms",
            str(trial.timeout_ms),
            f"must be above trial.min_view_ms ({trial.min_view_ms}), or 0 for no time-out",
        )
    seconds = study.completion.return_seconds
    if 0 < seconds < MIN_RETURN_SECONDS:
        yield (
            "completion.return_seconds",
            str(seconds),
            f"must be 0 or at least {MIN_RETURN_SECONDS}, so that there is time to read and cancel",
        )
    min_answers = study.stopping.min_answers
    if min_answers > budget.answers:
        yield (
            "stopping.min_answers",
            str(min_answers),
            f"must be at most budget.answers ({budget.answers}), or the rank can never settle",
        )
    max_answers = budget.participants * session.trials
    if 0 < max_answers < min_answers:
        yield (
            "stopping.min_answers",
            str(min_answers),
            f"budget.participants ({budget.participants}) with session.trials ({session.trials}) "
            f"each give at most {max_answers} answers",
        )


def _pay(study: Study) -> Iterator[tuple[str, str, str]]:
    pay = study.pay
    if pay.is_set and not pay.currency.strip():
        given = "per_hour" if pay.per_hour else "per_participant"
        yield (
            "pay.currency",
            shown(pay.currency),
            f"must be the currency of pay.{given} ({getattr(pay, given):g}), such as EUR or €",
        )


def _texts(study: Study) -> Iterator[tuple[str, str, str]]:
    texts = {f"texts.{name}": getattr(study.texts, name) for name in NEVER_EMPTY}
    if study.trial.question:
        # An empty one stands for the question of the kind.
        texts["trial.question"] = study.trial.question
    for key, text in texts.items():
        if not text.strip():
            yield key, shown(text), "must not be empty: participants need it"
    for name, allowed in PLACEHOLDERS.items():
        text = getattr(study.texts, name)
        if not _has_only(text, allowed):
            names = " and ".join(f"{{{placeholder}}}" for placeholder in allowed)
            rule = (
                f"may contain the placeholder{'s' * (len(allowed) > 1)} {names} and no other braces"
            )
            yield f"texts.{name}", shown(text), rule


def _has_only(text: str, allowed: tuple[str, ...]) -> bool:
    try:
        fields = list(string.Formatter().parse(text))
    except ValueError:
        return False
    return all(
        name is None or (name in allowed and not spec and not conversion)
        for _, name, spec, conversion in fields
    )


def _addresses(study: Study) -> Iterator[tuple[str, str, str]]:
    for prefix in ("", *(f"{name}_" for name in EXITS), "already_"):
        name = f"{prefix}redirect"
        address = getattr(study.completion, name)
        if address and not ADDRESS.fullmatch(address):
            yield f"completion.{name}", shown(address, 120), ADDRESS_RULE
