"""Parts of the trial page that are the same for all participants, each rendered once."""

from __future__ import annotations

from typing import Any

from flask import current_app, url_for
from markupsafe import Markup, escape

from server.collection.screens import TrialScreen
from server.study.config import LoadedStudy
from server.study.items.display import DisplayItems

PLAYED = ("audio", "video")
# Stands for a participant's token; quoting does not change it.
TOKEN = "token"


class TrialParts:
    """The parts of one study's trial page.

    The page is rendered with every answer, and what it shows of an item depends only on the item
    and its position. Created within a request, since URLs are part of it.
    """

    def __init__(self, study: LoadedStudy, items: DisplayItems) -> None:
        self._items = items.by_number
        templates = current_app.jinja_env
        macros: Any = templates.get_template("participant/_trial_parts.html").make_module(
            {"texts": study.settings.texts}
        )
        shared: Any = templates.get_template("participant/_parts.html").module
        self._macros, self.progress = macros, shared.progress
        self._rendered: dict[tuple[str, int], Markup] = {}
        self._before, self._after = url_for("participant.answer", token=TOKEN).rsplit(TOKEN, 1)
        self._stimuli = [
            "" if item.kind == "text" else url_for("participant.stimulus", name=item.name)
            for item in self._items
        ]
        self.title = f"<title>{escape(study.settings.title)}</title>\n"
        self.limits: Markup = macros.limits(study.settings.trial)

    def of(self, position: str, number: int) -> Markup:
        """An item as the anchor or an option."""
        key = (position, number)
        if key not in self._rendered:
            self._rendered[key] = getattr(self._macros, position)(self._items[number])
        return self._rendered[key]

    def answer_url(self, token: str) -> str:
        """Where a participant's answers are sent."""
        return f"{self._before}{token}{self._after}"

    def played(self, trial: TrialScreen) -> bool:
        """Whether an item of a question has to be played."""
        return any(self._items[number].kind in PLAYED for number in trial.items)

    def to_load(self, numbers: tuple[int, ...]) -> str:
        """URLs of the files to load ahead, separated by spaces."""
        return " ".join(filter(None, map(self._stimuli.__getitem__, numbers)))
