"""Cost of participants: pay per participant and per hour, and the recruitment site's fee."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from lore_active.questions.kinds import TRIPLET, Kind

# Assumed duration of a trial where none was measured.
SECONDS_PER_TRIAL = 4.0
# Published durations: of a triplet, and of ranking 2 of 8 (constants in the code of Roads & Mozer,
# github.com/roads). Between them, time is assumed to grow with the options that are looked through,
# once for each pick: 2 in a triplet, 8 + 7 in a ranking of 2 of 8.
PUBLISHED_TRIPLET, PUBLISHED_GRID = 3.06, 8.98
LOOKED_THROUGH = (2, 15)
# Amounts from here on are shown without cents.
WHOLE_FROM = 100
# A lower end that is this many times smaller than the upper end is not shown.
LITTLE = 20
MAX_PAY = 1_000_000


def published_seconds(kind: Kind) -> float:
    """Published or interpolated duration of a trial.

    Examples
    --------
    >>> from lore_active.questions.kinds import kind
    >>> from lore_active.simulation.cost import published_seconds
    >>> [round(published_seconds(kind(one)), 2) for one in ("triplet", "choose-1-of-4")]
    [3.06, 3.97]
    """
    looked = sum(kind.options - place for place in range(kind.pick))
    low, high = LOOKED_THROUGH
    slope = (PUBLISHED_GRID - PUBLISHED_TRIPLET) / (high - low)
    return PUBLISHED_TRIPLET + slope * (looked - low)


def seconds_per_trial(kind: Kind, known: Kind = TRIPLET, seconds: float | None = None) -> float:
    """Duration of a trial, given that of another kind; durations have the published ratios."""
    measured = SECONDS_PER_TRIAL if seconds is None else seconds
    return measured * published_seconds(kind) / published_seconds(known)


class Pay(Struct, forbid_unknown_fields=True, frozen=True):
    """Payment of participants; 0 for no payment of that kind."""

    per_participant: Annotated[float, Meta(ge=0.0, le=MAX_PAY)] = 0.0
    per_hour: Annotated[float, Meta(ge=0.0, le=MAX_PAY)] = 0.0
    fee: Annotated[float, Meta(ge=0.0, le=1.0)] = 0.0
    currency: Annotated[str, Meta(max_length=12)] = ""

    @property
    def is_set(self) -> bool:
        """Whether any payment is set."""
        return self.per_participant > 0 or self.per_hour > 0


def cost(pay: Pay, participants: float, hours: float) -> float:
    """Total cost of participants who took `hours` altogether, including the fee."""
    return (pay.per_participant * participants + pay.per_hour * hours) * (1.0 + pay.fee)


def pay_in_words(pay: Pay) -> str:
    """`2.50 EUR per participant and 6.00 EUR per hour`."""
    kinds = ((pay.per_participant, "participant"), (pay.per_hour, "hour"))
    parts = [f"{money(amount, pay.currency)} per {what}" for amount, what in kinds if amount]
    return " and ".join(parts)


def money(amount: float, currency: str) -> str:
    """`1,240 EUR`, `€12.50`."""
    return _with_currency(_digits(amount, amount), currency)


def money_range(low: float, high: float, currency: str) -> str:
    """`120 to 340 EUR`; `up to 340 EUR` if the lower end is negligible."""
    ends = _digits(low, high), _digits(high, high)
    if ends[0] == ends[1]:
        return _with_currency(ends[1], currency)
    if is_little(low, high):
        return f"up to {_with_currency(ends[1], currency)}"
    if not _is_sign(currency):
        return f"{ends[0]} to {_with_currency(ends[1], currency)}"
    return " to ".join(_with_currency(end, currency) for end in ends)


def is_little(low: float, high: float) -> bool:
    """Whether the lower end of a range is negligible."""
    return LITTLE * low <= high


def about(text: str) -> str:
    """Mark a range as an estimate; `up to` needs no mark."""
    return text if text.startswith("up to ") else f"about {text}"


def _digits(amount: float, largest: float) -> str:
    return f"{amount:,.0f}" if largest >= WHOLE_FROM else f"{amount:,.2f}"


def _with_currency(digits: str, currency: str) -> str:
    currency = currency.strip()
    return f"{currency}{digits}" if _is_sign(currency) else f"{digits} {currency}"


def _is_sign(currency: str) -> bool:
    """Whether it is a symbol such as €, which precedes the amount; a code or word follows it."""
    return not any(character.isalpha() for character in currency)
