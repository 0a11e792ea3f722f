"""Parts of the trial page that are the same for all participants, each rendered once."""

from __future__ import annotations

from typing import Any

from flask import current_app, url_for
from markupsafe import Markup, escape

from server.collection.screens import TrialScreen
from server.study.config import LoadedStudy, kind_of
from server.study.items.display import DisplayItems

PLAYED = ("audio", "video")
# Stands for a participant's token; quoting does not change it.
TOKEN = "token"
# The row of digits on a keyboard: one key for each option, the next for "I can't tell".
KEYS = "1234567890-="


class TrialParts:
    """The parts of one study's trial page.

    The page is rendered with every answer, and what it shows of an item depends only on the item
    and its position. Created within a request, since URLs are part of it.
    """

    def __init__(self, study: LoadedStudy, items: DisplayItems) -> None:
        self._items = items.by_number
        self._asked = kind_of(study.settings.trial)
        self._texts = study.settings.texts
        templates = current_app.jinja_env
        macros: Any = templates.get_template("participant/_trial_parts.html").make_module(
            {"texts": study.settings.texts}
        )
        shared: Any = templates.get_template("participant/_parts.html").module
        self._macros, self.progress = macros, shared.progress
        self._rendered: dict[tuple[str | int, int], Markup] = {}
        self._before, self._after = url_for("participant.answer", token=TOKEN).rsplit(TOKEN, 1)
        self._stimuli = [
            "" if item.kind == "text" else url_for("participant.stimulus", name=item.name)
            for item in self._items
        ]
        self.title = f"<title>{escape(study.settings.title)}</title>\n"
        self.layout = study.settings.trial.layout if self._asked.name == "triplet" else "grid"
        self.shape: Markup = macros.shape(self._asked)
        self.limits: Markup = macros.limits(study.settings.trial, self._asked)
        self.skip_key = KEYS[self._asked.options : self._asked.options + 1]

    def of(self, position: str | int, number: int) -> Markup:
        """An item as the anchor or an option: its side, or its position among several."""
        key = (position, number)
        if key not in self._rendered:
            item = self._items[number]
            if isinstance(position, str):
                self._rendered[key] = getattr(self._macros, position)(item)
            else:
                # In a ranking without scripts, options are named by their numbers.
                named = self._asked.ordered and self._asked.pick > 1
                hint = str(position + 1) if named else KEYS[position]
                self._rendered[key] = self._macros.numbered(item, position, self._asked, hint)
        return self._rendered[key]

    def name(self, number: int, letter: int) -> str:
        """An item in a list to choose from."""
        item = self._items[number]
        return item.alt or item.text or self._texts.image_name.format(letter=letter)

    def answer_url(self, token: str) -> str:
        """Where a participant's answers are sent."""
        return f"{self._before}{token}{self._after}"

    def played(self, trial: TrialScreen) -> bool:
        """Whether an item of a question has to be played."""
        return any(self._items[number].kind in PLAYED for number in trial.items)

    def to_load(self, numbers: tuple[int, ...]) -> str:
        """URLs of the files to load ahead, separated by spaces."""
        return " ".join(filter(None, map(self._stimuli.__getitem__, numbers)))
