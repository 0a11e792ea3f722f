"""study.toml as typed settings: every key with its type, default and limits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from lore_active.acquisition.registry import SELECTORS
from lore_active.questions import kinds
from lore_active.simulation.cost import Pay
from lore_active.stopping.registry import DEFAULT_RULE, STOPPING_RULES
from server.study.texts import Texts

# Limits in study.toml and on the monitor: far beyond any study, and far below the limits of the
# database.
MAX_ANSWERS = 10_000_000
MAX_PARTICIPANTS = 1_000_000
MAX_TRIALS = 5000

Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Milliseconds = Annotated[int, Meta(ge=0, le=600_000)]
Colour = Annotated[str, Meta(pattern="^#[0-9A-Fa-f]{6}$")]
LIGHT_GREY = "#ebebeb"


class Stimuli(Struct, forbid_unknown_fields=True, frozen=True):
    """Source of the items: a folder of files, or a list with labels."""

    folder: str = "stimuli"
    list: str = ""
    catches: str = ""
    max_megabytes: Annotated[float, Meta(gt=0)] = 5.0


class Trial(Struct, forbid_unknown_fields=True, frozen=True):
    """Kind of the questions, their appearance, and how they may be answered.

    Without a question of its own, a loaded study has that of its kind.
    """

    kind: kinds.KindName = "triplet"
    options: Annotated[int, Meta(ge=0, le=kinds.MAX_OPTIONS)] = 0
    pick: Annotated[int, Meta(ge=0, le=kinds.MAX_OPTIONS - 1)] = 0
    question: str = ""
    background: Colour = LIGHT_GREY
    layout: Literal["above", "between"] = "above"
    skip: bool = False
    must_play: bool = True
    min_view_ms: Milliseconds = 0
    interval_ms: Milliseconds = 0
    timeout_ms: Milliseconds = 0


class Session(Struct, forbid_unknown_fields=True, frozen=True):
    """The session of one participant."""

    trials: Annotated[int, Meta(ge=1, le=MAX_TRIALS)] = 80
    practice: Annotated[int, Meta(ge=0, le=20)] = 3
    example: bool = True
    break_every: Annotated[int, Meta(ge=0, le=MAX_TRIALS)] = 40
    random: Share = 0.10
    catch: Annotated[float, Meta(ge=0.0, le=0.5)] = 0.05
    repeat: Annotated[float, Meta(ge=0.0, le=0.5)] = 0.05
    rush_ms: Annotated[int, Meta(ge=0, le=10_000)] = 500
    lease_seconds: Annotated[int, Meta(ge=5, le=86_400)] = 120
    idle_minutes: Annotated[int, Meta(ge=1, le=10_080)] = 30
    feedback: bool = True


class Budget(Struct, forbid_unknown_fields=True, frozen=True):
    """Maximum numbers of answers and participants; 0 participants: no limit."""

    answers: Annotated[int, Meta(ge=1, le=MAX_ANSWERS)] = 4000
    participants: Annotated[int, Meta(ge=0, le=MAX_PARTICIPANTS)] = 0


class Learning(Struct, forbid_unknown_fields=True, frozen=True):
    """How questions are selected."""

    selector: Annotated[str, Meta(extra={"registry": SELECTORS})] = "fisher"
    simulated: bool = False


class Stopping(Struct, forbid_unknown_fields=True, frozen=True):
    """When the rank counts as settled; 0 stands for the default of the rule."""

    rule: Annotated[str, Meta(extra={"registry": STOPPING_RULES})] = DEFAULT_RULE
    confidence: Annotated[float, Meta(ge=0.5, lt=1.0)] = 0.975
    audits: Annotated[int, Meta(ge=0, le=100)] = 0
    min_answers: Annotated[int, Meta(ge=0, le=MAX_ANSWERS)] = 0
    smallest_dimension: Annotated[float, Meta(ge=0.0, le=0.5)] = 0.0
    evidence: Annotated[float, Meta(gt=1.0, lt=1e6)] = 20.0


class Completion(Struct, forbid_unknown_fields=True, frozen=True):
    """Codes and URLs at each exit; [NAME] is replaced by the entry parameter."""

    code: str = ""
    redirect: str = ""
    return_seconds: Annotated[int, Meta(ge=0, le=600)] = 0
    show_map: bool = False
    declined_code: str = ""
    declined_redirect: str = ""
    full_code: str = ""
    full_redirect: str = ""
    expired_code: str = ""
    expired_redirect: str = ""
    already_code: str = ""
    already_redirect: str = ""


class Storage(Struct, forbid_unknown_fields=True, frozen=True):
    """How the study's data are stored; `backup_minutes` 0: no backups."""

    backup_minutes: Annotated[int, Meta(ge=0, le=1440)] = 5


class Bots(Struct, forbid_unknown_fields=True, frozen=True):
    """Simulated participants: coordinates of their items (a CSV file), noise and lapse rate."""

    positions: str = ""
    noise: Annotated[float, Meta(ge=0.0)] = 0.1
    lapse: Share = 0.02


class Study(Struct, forbid_unknown_fields=True, frozen=True):
    """A whole study.toml."""

    title: Annotated[str, Meta(min_length=1, max_length=200)]
    seed: Annotated[int, Meta(ge=0, lt=2**53)] = 1
    language: Annotated[str, Meta(pattern=r"^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$")] = "en"
    direction: Literal["ltr", "rtl"] = "ltr"
    listed: Literal["locally", "everywhere", "nowhere"] = "locally"
    stimuli: Stimuli = Stimuli()
    trial: Trial = Trial()
    session: Session = Session()
    budget: Budget = Budget()
    pay: Pay = Pay()
    learning: Learning = Learning()
    stopping: Stopping = Stopping()
    completion: Completion = Completion()
    storage: Storage = Storage()
    bots: Bots = Bots()
    texts: Texts = Texts()


Kind = Literal["text", "image", "audio", "video"]


class Item(Struct, frozen=True):
    """An item: its unique key, kind, file or text, label, and text alternative if any."""

    key: str
    kind: Kind
    label: str
    alt: str
    text: str = ""
    file: Path | None = None


class Catch(Struct, frozen=True):
    """A question whose answer is known: `nearer` is the correct option.

    `others` are further options that are farther than `nearer`, for questions with more than two.
    """

    anchor: int
    nearer: int
    farther: int
    others: tuple[int, ...] = ()


class LoadedStudy(Struct, frozen=True):
    """A valid study folder: its settings, items and catch questions.

    `given` are the keys that study.toml has; the others have their defaults.
    """

    folder: Path
    name: str
    settings: Study
    items: tuple[Item, ...]
    catches: tuple[Catch, ...]
    given: frozenset[str] = frozenset()

    @property
    def kind(self) -> kinds.Kind:
        """What is asked."""
        return kind_of(self.settings.trial)


def kind_of(trial: Trial) -> kinds.Kind:
    """Return the kind of questions; raise InvalidParameter if there is no such kind."""
    return kinds.kind_of(trial.kind, trial.options or None, trial.pick or None)
