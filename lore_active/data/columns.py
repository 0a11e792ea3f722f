"""Tables of answers: the roles of columns by their names, in files and in data frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from lore_active.data.headers import (
    ANSWER,
    FIRST,
    LEFT_OUT,
    NAMES,
    PARTICIPANT,
    QUESTION,
    ROLES,
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
from lore_active.wording import many


@dataclass(frozen=True)
class Sheet:
    """A raw table: the names of its columns, and a function that returns the cells of one.

    `lines` are the line numbers of the rows in a file.
    """

    name: str
    header: Sequence[str]
    column: Callable[[int], NDArray[Any]]
    lines: Sequence[int] | None = None

    def place(self, row: int) -> str:
        """Describe the location of a row for an error message."""
        if self.lines is None:
            return f"row {row} (counted from 0)" + (f" of {self.name}" if self.name else "")
        return f"line {self.lines[row]} of {self.name}"


@dataclass(frozen=True)
class AnswerTable:
    """Rows of three cells as in a file or data frame, and the location of each row.

    names: the same cells as labels, if the source has both numbers and labels. labels: labels of
    the numbered items, by number. left_out: number of omitted rows (practice, catch trials,
    skipped questions, excluded participants). simulated_left_out: number of omitted rows of
    simulated participants. kept: indices of these rows in the source, if not all. kind: "answers"
    if the names of the columns say which option is nearer, "questions" if they say only what was
    shown, "rows" if there are no names. responses: whether the first option is nearer.
    trials, participants: trial and participant of each row, if columns say so. If every row of the
    source is a trial of several comparisons, `source_rows` is their number, and `reading` says in a
    sentence how they were read.
    """

    name: str
    rows: Any
    lines: Sequence[int] | None = None
    weights: Any = None
    labels: tuple[str, ...] | None = None
    names: Any = None
    left_out: int = 0
    simulated_left_out: int = 0
    kept: NDArray[np.int64] | None = None
    kind: Literal["answers", "questions", "rows"] = "rows"
    responses: Any = None
    trials: NDArray[Any] | None = None
    participants: NDArray[Any] | None = None
    source_rows: int | None = None
    reading: str = ""

    @property
    def omitted(self) -> int:
        """Number of rows of the source that are not in the table."""
        return self.left_out + self.simulated_left_out

    def place(self, row: int) -> str:
        """Describe the location of a row for an error message."""
        at = row if self.kept is None else int(self.kept[row])
        return Sheet(self.name, (), _nothing, self.lines).place(at)


def _nothing(_: int) -> NDArray[Any]:
    return np.empty(0)


def at_start(place: str) -> str:
    """Capitalise a location, for the beginning of a sentence."""
    return place[:1].upper() + place[1:]


def is_standard(header: Sequence[str]) -> bool:
    """Whether the columns include a set that takes precedence over others."""
    return _layout(header, FIRST, ()) is not None


def is_header(header: Sequence[str]) -> bool:
    """Whether these are the names of columns of answers."""
    return _layout(header, FIRST, (ANSWER, SHOWN)) is not None


def names_a_column(cell: str) -> bool:
    """Whether a cell is a column name of this program or of tripletTools."""
    return cell.casefold() in {*FIRST[0], *FIRST[1]}


def answers_in(sheet: Sheet, simulated: bool = False) -> AnswerTable | None:
    """Read the answers of a sheet by the names of its columns; None if the names are unknown.

    Columns that say what was shown, but not what was chosen, give questions. Answers of simulated
    participants are omitted unless `simulated`.
    """
    layout = _layout(sheet.header, FIRST, (ANSWER, SHOWN, QUESTION))
    if layout is None:
        return None
    roles, at = layout
    total = len(cells_of(sheet, at[0]))
    kept, real = judgements_in(sheet, total, simulated)
    cells = [cells_of(sheet, k, total)[kept] for k in at]
    if roles == SHOWN:
        rows, answered = _as_chosen(sheet, cells, kept)
        kept = kept[answered]
    else:
        rows = stacked(cells)
    return AnswerTable(
        sheet.name,
        rows,
        sheet.lines,
        weights_in(sheet, kept, total),
        names=_names(sheet, at, kept, total),
        left_out=real - len(kept),
        simulated_left_out=total - real,
        kept=kept if len(kept) < total else None,
        kind="questions" if roles == QUESTION else "answers",
        trials=identities_in(sheet, TRIAL, kept, total),
        participants=identities_in(sheet, PARTICIPANT, kept, total),
    )


def named_or_three(sheet: Sheet, simulated: bool = False) -> AnswerTable:
    """Read the answers of a sheet by the names of its columns, or three columns by order."""
    table = answers_in(sheet, simulated)
    if table is not None:
        return table
    header = [str(name) for name in sheet.header]
    if len(header) != 3 or any(names_a_column(name) for name in header):
        raise InvalidTriplets(
            f"The columns of {sheet.name} are {', '.join(map(repr, header))[:200] or 'none'}. "
            f"{known_headers()}; or exactly three columns in the order anchor, nearer, farther."
        )
    first = cells_of(sheet, 0)
    return AnswerTable(sheet.name, stacked([cells_of(sheet, k, len(first)) for k in range(3)]))


def stacked(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Stack columns, as numbers if all of them are numeric."""
    if all(column.dtype.kind in "iuf" for column in columns):
        return np.column_stack(columns)
    return np.column_stack([column.astype(object) for column in columns])


def cells_of(sheet: Sheet, k: int, total: int | None = None) -> NDArray[Any]:
    """The cells of a column: `total`, if known."""
    cells = sheet.column(k)
    if cells.ndim != 1 or (total is not None and len(cells) != total):
        raise InvalidTriplets(
            f"The column {str(sheet.header[k])!r} of {sheet.name} has shape {cells.shape}, but "
            + ("a column must be one-dimensional." if total is None else f"there are {total} rows.")
        )
    return cells


def _layout(
    header: Sequence[str], first: Iterable[tuple[str, ...]], roles: Iterable[tuple[str, ...]]
) -> tuple[tuple[str, ...], list[int]] | None:
    """The roles that the columns have, and the index of each."""
    names = [normal(name) for name in header]
    for wanted in first:
        if all(names.count(normal(name)) for name in wanted):
            return (
                ANSWER if len(wanted) == 3 else SHOWN,
                [only_column(header, names, [name]) for name in wanted],
            )
    for kind in roles:
        if all(any(normal(name) in names for name in ROLES[role]) for role in kind):
            return kind, [only_column(header, names, ROLES[role]) for role in kind]
    return None


def only_column(header: Sequence[str], names: list[str], wanted: Sequence[str]) -> int:
    """Index of the only column with one of these names."""
    at = [k for k, name in enumerate(names) if name in {normal(alias) for alias in wanted}]
    if len(at) > 1:
        both = " and ".join(repr(str(header[k])) for k in at)
        raise InvalidTriplets(
            f"The columns {both} could both be the {wanted[0]}: rename or remove all but one."
        )
    return at[0]


def judgements_in(sheet: Sheet, total: int, simulated: bool) -> tuple[NDArray[np.int64], int]:
    """Indices of the rows that are similarity judgements, and how many rows may be read at all.

    Rows of simulated participants are read only if `simulated`.
    """
    judged, real = _judgements(sheet, total), _real(sheet, total, simulated)
    kept = np.flatnonzero(judged & real)
    if judged.any() and not len(kept):
        refuse_only_simulated(sheet.name, total - int(real.sum()))
    return kept, int(real.sum())


def _judgements(sheet: Sheet, total: int) -> NDArray[np.bool_]:
    """Which rows are similarity judgements, of real or simulated participants."""
    names = [normal(name) for name in sheet.header]
    keep = np.ones(total, dtype=bool)
    for column, marks in LEFT_OUT.items():
        if column in names:
            cells = cells_of(sheet, names.index(column), total).tolist()
            keep &= np.array([_mark(cell) not in marks for cell in cells], dtype=bool)
    return keep


def _real(sheet: Sheet, total: int, simulated: bool) -> NDArray[np.bool_]:
    """Which rows to read: those of real participants, or all if `simulated`."""
    names = [normal(name) for name in sheet.header]
    if simulated or SIMULATED not in names:
        return np.ones(total, dtype=bool)
    return not_simulated(cells_of(sheet, names.index(SIMULATED), total))


def not_simulated(cells: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows are not marked as answers of simulated participants."""
    return np.array([_mark(cell) not in SIMULATED_MARKS for cell in cells.tolist()], dtype=bool)


def refuse_only_simulated(name: str, rows: int) -> NoReturn:
    """Raise an error: without simulated participants no answers remain."""
    raise InvalidTriplets(
        f"There are only answers of simulated participants (bots) in {name}: {many(rows, 'row')}, "
        "which are omitted. To include them, pass --simulated; in Python, as_triplets(…, "
        "simulated=True)."
    )


def simulated_note(rows: int) -> str:
    """Note for the output of commands that omitted rows of simulated participants."""
    if not rows:
        return ""
    were = f"{many(rows, 'row')} of simulated participants (bots) {'was' if rows == 1 else 'were'}"
    return f"{were} omitted; --simulated includes them"


def _mark(cell: Any) -> str:
    return str(cell).strip().lower().removesuffix(".0")


def _as_chosen(
    sheet: Sheet, cells: Sequence[NDArray[Any]], kept: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Rows (anchor, nearer, farther), and their indices in `kept`; skips rows without a choice."""
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
    """The side that was chosen, given as the option itself or as its side."""
    for side, option in (("left", left), ("right", right)):
        if same_item(chosen, option):
            return side
    text = chosen.strip().lower() if isinstance(chosen, str) else ""
    return text if text in ("left", "right") else None


def same_item(a: Any, b: Any) -> bool:
    """Whether two cells name the same item."""
    if isinstance(a, str) and isinstance(b, str):
        return a.strip() == b.strip()
    return bool(is_number(a) and is_number(b) and float_of(a) == float_of(b))


def weights_in(sheet: Sheet, kept: NDArray[np.int64], total: int) -> Any:
    """The weights of these rows; None without such a column."""
    names = [normal(name) for name in sheet.header]
    if not any(normal(name) in names for name in WEIGHT):
        return None
    cells = cells_of(sheet, only_column(sheet.header, names, WEIGHT), total)[kept]
    if cells.dtype.kind in "iuf":
        return cells.astype(float)
    weights = []
    for row, cell in zip(kept, cells.tolist(), strict=True):
        if not is_number(cell) or is_missing(cell):
            raise InvalidTriplets(f"{at_start(sheet.place(row))}: weight {cell!r} is not a number.")
        weights.append(float_of(cell))
    return weights


def identities_in(
    sheet: Sheet, wanted: Sequence[str], kept: NDArray[np.int64], total: int
) -> NDArray[Any] | None:
    """The cells of a column that says which rows belong together; None without such a column."""
    names = [normal(name) for name in sheet.header]
    # A file may name its rows' participants twice, by number and by name: the first will do.
    for name in wanted:
        if normal(name) in names:
            return cells_of(sheet, names.index(normal(name)), total)[kept]
    return None


def _names(
    sheet: Sheet, at: Sequence[int], kept: NDArray[np.int64], total: int
) -> NDArray[Any] | None:
    """Labels of items that the columns `at` give by number, if other columns have them."""
    for wanted in NAMES:
        layout = _layout(sheet.header, [wanted], ())
        if layout is None or layout[1] == list(at):
            continue
        cells = [cells_of(sheet, k, total)[kept] for k in layout[1]]
        if len(wanted) == 3:
            return stacked(cells)
        rows, answered = _as_chosen(sheet, cells, kept)
        if len(answered) == len(kept):
            return rows
    return None
