"""Tables of answers: which columns say what, whatever they are called, in files and in frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from lore_active.data.headers import (
    ANSWER,
    FIRST,
    NAMES,
    PARTICIPANT,
    QUESTION,
    ROLES,
    SET_ASIDE,
    SHOWN,
    SIMULATED,
    SIMULATED_MARKS,
    TRIAL,
    WEIGHT,
    known_headers,
    normal,
)
from lore_active.data.values import float_of, is_missing, is_number
from lore_active.errors import InvalidTriplets


@dataclass(frozen=True)
class Sheet:
    """A table as it came: the names of its columns, and the cells of each when asked for.

    `lines` are those of a file that the rows were in.
    """

    name: str
    header: Sequence[str]
    column: Callable[[int], NDArray[Any]]
    lines: Sequence[int] | None = None

    def place(self, row: int) -> str:
        """How to tell a person where a row is."""
        if self.lines is None:
            return f"row {row} (counted from 0)" + (f" of {self.name}" if self.name else "")
        return f"line {self.lines[row]} of {self.name}"


@dataclass(frozen=True)
class AnswerTable:
    """Rows of three cells as they were in a file or frame, and where each row was.

    names: the same cells by name, where the source has both numbers and names. labels: the names
    of the numbers, in their order. set_aside: how many rows are not here: practice, checks,
    skipped questions, excluded participants. simulated_left_out: how many rows of simulated
    participants are not here, whatever else they are. kept: which rows of the source these are, if
    not all. kind: whether the columns' names say that nearer comes before farther, or that options
    come as they were shown; "rows" are not named. responses: whether the first option is nearer.
    trials, participants: which trial each row belongs to and who answered it, where a column says.
    """

    name: str
    rows: Any
    lines: Sequence[int] | None = None
    weights: Any = None
    labels: tuple[str, ...] | None = None
    names: Any = None
    set_aside: int = 0
    simulated_left_out: int = 0
    kept: NDArray[np.int64] | None = None
    kind: Literal["answers", "questions", "rows"] = "rows"
    responses: Any = None
    trials: NDArray[Any] | None = None
    participants: NDArray[Any] | None = None

    @property
    def omitted(self) -> int:
        """How many rows of the source are not here, for whatever reason."""
        return self.set_aside + self.simulated_left_out

    def place(self, row: int) -> str:
        """How to tell a person where a row is."""
        at = row if self.kept is None else int(self.kept[row])
        return Sheet(self.name, (), _nothing, self.lines).place(at)


def _nothing(_: int) -> NDArray[Any]:
    return np.empty(0)


def at_start(place: str) -> str:
    """A place as the first word of a sentence."""
    return place[:1].upper() + place[1:]


def is_header(header: Sequence[str]) -> bool:
    """Whether these are names of columns that hold answers."""
    return _found(header, (*FIRST,), (ANSWER, SHOWN)) is not None


def names_a_column(cell: str) -> bool:
    """Whether a cell is one of the names that this program or tripletTools give to columns."""
    return cell.casefold() in {*FIRST[0], *FIRST[1]}


def answers_in(sheet: Sheet, simulated: bool = False) -> AnswerTable | None:
    """The sheet's answers, by the names of its columns; None where they are not understood.

    Columns that say what was asked, but not what was chosen, give questions. Answers of simulated
    participants are left out unless `simulated`.
    """
    found = _found(sheet.header, FIRST, (ANSWER, SHOWN, QUESTION))
    if found is None:
        return None
    roles, at = found
    total = len(_cells(sheet, at[0]))
    judged, real = _judgements(sheet, total), _real(sheet, total, simulated)
    kept = np.flatnonzero(judged & real)
    if judged.any() and not len(kept):
        refuse_only_simulated(sheet.name, int((~real).sum()))
    cells = [_cells(sheet, k, total)[kept] for k in at]
    if roles == SHOWN:
        rows, answered = _as_chosen(sheet, cells, kept)
        kept = kept[answered]
    else:
        rows = stacked(cells)
    return AnswerTable(
        sheet.name,
        rows,
        sheet.lines,
        _weights(sheet, kept, total),
        names=_names(sheet, at, kept, total),
        set_aside=int(real.sum()) - len(kept),
        simulated_left_out=int((~real).sum()),
        kept=kept if len(kept) < total else None,
        kind="questions" if roles == QUESTION else "answers",
        trials=_identities(sheet, TRIAL, kept, total),
        participants=_identities(sheet, PARTICIPANT, kept, total),
    )


def named_or_three(sheet: Sheet, simulated: bool = False) -> AnswerTable:
    """The sheet's answers by the names of its columns, or by their order if there are three."""
    table = answers_in(sheet, simulated)
    if table is not None:
        return table
    header = [str(name) for name in sheet.header]
    if len(header) != 3 or any(names_a_column(name) for name in header):
        raise InvalidTriplets(
            f"The columns of {sheet.name} are {', '.join(map(repr, header))[:200] or 'none'}. "
            f"{known_headers()}; or exactly three columns in the order anchor, nearer, farther."
        )
    first = _cells(sheet, 0)
    return AnswerTable(sheet.name, stacked([_cells(sheet, k, len(first)) for k in range(3)]))


def stacked(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Columns side by side, as numbers where all are."""
    if all(column.dtype.kind in "iuf" for column in columns):
        return np.column_stack(columns)
    return np.column_stack([column.astype(object) for column in columns])


def _cells(sheet: Sheet, k: int, total: int | None = None) -> NDArray[Any]:
    cells = sheet.column(k)
    if cells.ndim != 1 or (total is not None and len(cells) != total):
        raise InvalidTriplets(
            f"The column {str(sheet.header[k])!r} of {sheet.name} has shape {cells.shape}, but "
            + ("a column must be one-dimensional." if total is None else f"there are {total} rows.")
        )
    return cells


def _found(
    header: Sequence[str], first: Iterable[tuple[str, ...]], roles: Iterable[tuple[str, ...]]
) -> tuple[tuple[str, ...], list[int]] | None:
    """Which kind of columns there are, and where each of them is."""
    names = [normal(name) for name in header]
    for wanted in first:
        if all(names.count(normal(name)) for name in wanted):
            return (
                ANSWER if len(wanted) == 3 else SHOWN,
                [_only(header, names, [name]) for name in wanted],
            )
    for kind in roles:
        if all(any(normal(name) in names for name in ROLES[role]) for role in kind):
            return kind, [_only(header, names, ROLES[role]) for role in kind]
    return None


def _only(header: Sequence[str], names: list[str], wanted: Sequence[str]) -> int:
    """Where the one column of these names is."""
    at = [k for k, name in enumerate(names) if name in {normal(one) for one in wanted}]
    if len(at) > 1:
        both = " and ".join(repr(str(header[k])) for k in at)
        raise InvalidTriplets(
            f"The columns {both} could both be the {wanted[0]}: rename or leave out all but one."
        )
    return at[0]


def _judgements(sheet: Sheet, total: int) -> NDArray[np.bool_]:
    """Which rows are judgements of similarity, whoever gave them."""
    names = [normal(name) for name in sheet.header]
    keep = np.ones(total, dtype=bool)
    for column, marks in SET_ASIDE.items():
        if column in names:
            cells = _cells(sheet, names.index(column), total).tolist()
            keep &= np.array([_mark(cell) not in marks for cell in cells], dtype=bool)
    return keep


def _real(sheet: Sheet, total: int, simulated: bool) -> NDArray[np.bool_]:
    """Which rows are to be read: those of people, or all of them if simulated ones are wanted."""
    names = [normal(name) for name in sheet.header]
    if simulated or SIMULATED not in names:
        return np.ones(total, dtype=bool)
    return by_people(_cells(sheet, names.index(SIMULATED), total))


def by_people(cells: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows no simulated participant gave, by the column that marks theirs."""
    return np.array([_mark(cell) not in SIMULATED_MARKS for cell in cells.tolist()], dtype=bool)


def refuse_only_simulated(name: str, rows: int) -> NoReturn:
    """Say that leaving simulated participants out leaves nothing, and how to take them in."""
    raise InvalidTriplets(
        f"{at_start(name)} holds no answers but those of simulated participants (bots): {rows:,} "
        f"{'row' if rows == 1 else 'rows'}, which are left out. To take them in, give --simulated; "
        "in Python, as_triplets(…, simulated=True)."
    )


def simulated_note(rows: int) -> str:
    """What commands say of the rows of simulated participants that they left out."""
    if not rows:
        return ""
    were = (
        "row of simulated participants (bots) was"
        if rows == 1
        else ("rows of simulated participants (bots) were")
    )
    return f"{rows:,} {were} left out; --simulated takes them in"


def _mark(cell: Any) -> str:
    return str(cell).strip().lower().removesuffix(".0")


def _as_chosen(
    sheet: Sheet, cells: Sequence[NDArray[Any]], kept: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Rows (anchor, nearer, farther), and which of `kept` they are: without a choice, no answer."""
    nearer, farther, answered = [], [], []
    for row, (left, right, chosen) in enumerate(zip(*(c.tolist() for c in cells[1:]), strict=True)):
        side = _side(left, right, chosen)
        if side is None:
            if is_missing(chosen) or chosen in ("NA", "NaN", "null", "None"):
                continue
            raise InvalidTriplets(
                f"{at_start(sheet.place(kept[row]))}: {chosen!r} was chosen, but {left!r} and "
                f"{right!r} were shown. The column must hold one of the two, or left or right."
            )
        answered.append(row)
        nearer.append(left if side == "left" else right)
        farther.append(right if side == "left" else left)
    rows = np.asarray(answered, dtype=np.int64)
    kind = object if any(c.dtype.kind not in "iuf" for c in cells[:3]) else None
    options = [np.array(column, dtype=kind) for column in (nearer, farther)]
    return stacked([cells[0][rows], *options]), rows


def _side(left: Any, right: Any, chosen: Any) -> str | None:
    """Which option was chosen: told as the option itself, or as its side."""
    for side, option in (("left", left), ("right", right)):
        if _same(chosen, option):
            return side
    text = chosen.strip().lower() if isinstance(chosen, str) else ""
    return text if text in ("left", "right") else None


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return one.strip() == other.strip()
    return bool(is_number(one) and is_number(other) and float_of(one) == float_of(other))


def _weights(sheet: Sheet, kept: NDArray[np.int64], total: int) -> Any:
    names = [normal(name) for name in sheet.header]
    if not any(normal(name) in names for name in WEIGHT):
        return None
    cells = _cells(sheet, _only(sheet.header, names, WEIGHT), total)[kept]
    if cells.dtype.kind in "iuf":
        return cells.astype(float)
    weights = []
    for row, cell in zip(kept, cells.tolist(), strict=True):
        if not is_number(cell) or is_missing(cell):
            raise InvalidTriplets(f"{at_start(sheet.place(row))}: weight {cell!r} is not a number.")
        weights.append(float_of(cell))
    return weights


def _identities(
    sheet: Sheet, wanted: Sequence[str], kept: NDArray[np.int64], total: int
) -> NDArray[Any] | None:
    """The cells of a column that says which rows belong together; None without such a column."""
    names = [normal(name) for name in sheet.header]
    # A file may name its rows' participants twice, by number and by name: the first will do.
    for name in wanted:
        if normal(name) in names:
            return _cells(sheet, names.index(normal(name)), total)[kept]
    return None


def _names(
    sheet: Sheet, at: Sequence[int], kept: NDArray[np.int64], total: int
) -> NDArray[Any] | None:
    """The names of items that the columns `at` give by number, where other columns have them."""
    for wanted in NAMES:
        found = _found(sheet.header, [wanted], ())
        if found is None or found[1] == list(at):
            continue
        cells = [_cells(sheet, k, total)[kept] for k in found[1]]
        if len(wanted) == 3:
            return stacked(cells)
        rows, answered = _as_chosen(sheet, cells, kept)
        if len(answered) == len(kept):
            return rows
    return None
