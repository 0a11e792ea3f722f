"""Validation of answers: every supported input becomes `Triplets`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lore_active.data.cells import COLUMNS, Labels, Place, names_of, numbered
from lore_active.data.columns import AnswerTable, at_start
from lore_active.data.formats import read_table
from lore_active.data.frames import sheet_of
from lore_active.data.trial_tables import named_or_in_order, trials_of_rows
from lore_active.data.triplets import Triplets
from lore_active.data.values import is_missing
from lore_active.errors import InvalidParameter, InvalidTriplets
from lore_active.questions.kinds import TRIPLET
from lore_active.questions.kinds import kind as kind_of
from lore_active.types import Floats, Indices

MIN_ITEMS = 3
# More than any set of stimuli has, and as much as memory and time allow.
MAX_ITEMS = 100_000
# Up to this many items, numbers may have any gaps; beyond it, at least half of them must occur.
FREELY_NUMBERED = 100
# Number of a participant who is not known.
UNKNOWN = -1
RULE_OF_Y = (
    "must hold a response for each question: True or 1 where the first option is nearer, False, 0 "
    "or -1 where the second is"
)


def as_triplets(
    source: Any,
    n_objects: int | None = None,
    sample_weight: ArrayLike | None = None,
    labels: Sequence[str] | None = None,
    y: ArrayLike | None = None,
    *,
    simulated: bool = False,
    kind: str | None = None,
) -> Triplets:
    """Read and validate answers from arrays, data frames or files.

    Parameters
    ----------
    source : array-like, data frame, mapping of columns, file path or Triplets
        Rows (anchor, nearer, farther) of item numbers (from 0) or item labels. Named columns are
        read by name, in any order; so are the columns anchor, left, right, chosen. Files are CSV,
        `.npy` or `.npz`.
    n_objects : int, optional
        Number of items; by default the items that occur, up to the highest number.
    sample_weight : array-like of float, optional
        Weight of each answer, 0 or more; by default the weights in the source, or 1.
    labels : sequence of str, optional
        Labels of the items by index; by default the labels that occur, sorted. Empty if items must
        be given by number.
    y : array-like of bool or int, optional
        Only if the rows are questions (anchor, first option, second option): True or 1 where the
        first option is nearer, False, 0 or -1 where the second is.
    simulated : bool, default False
        Whether to include the rows that a column `simulated` marks as answers of simulated
        participants (bots).
    kind : str, optional
        What each row is a trial of, if the columns do not say so: "rank-2-of-8" or "choose-2-of-8"
        (the query, its references in the order of choice, those not chosen), "odd-one-out" (the
        odd one last) or "triplet".

    Returns
    -------
    Triplets

    Raises
    ------
    InvalidTriplets
        If the source cannot be read as triplets; the message names the row and the rule.
    InvalidParameter
        If `n_objects` is not possible, or does not match the labels.

    Examples
    --------
    >>> from lore_active import as_triplets
    >>> as_triplets([[0, 1, 2], [2, 1, 0]]).nearer.tolist()
    [1, 1]

    Columns are recognised by their names:

    >>> trials = {"anchor": ["a"], "left": ["b"], "right": ["c"], "chosen": ["right"]}
    >>> answers = as_triplets(trials)
    >>> [answers.labels[item] for item in (answers.nearer[0], answers.farther[0])]
    ['c', 'b']

    So are trials of several comparisons:

    >>> grids = {"query": [0], "reference_1": [3], "reference_2": [1], "reference_3": [2]}
    >>> answers = as_triplets(grids, kind="rank-2-of-3")
    >>> len(answers), answers.n_trials
    (3, 1)
    """
    if isinstance(source, Triplets):
        same_items = n_objects is None or n_objects == source.n_objects
        if same_items and sample_weight is None and labels is None and y is None:
            return source
        rows = np.column_stack([source.anchor, source.nearer, source.farther])
        weights = source.weight if source.weighted else None
        table = AnswerTable(
            *("", rows, None, weights, source.labels),
            kind="answers",
            trials=source.trial,
            participants=source.participant,
        )
        n_objects = n_objects or source.n_objects
    else:
        table = _table(source, simulated, kind)
    cells, known = numbered(table, labels)
    count = _item_count(cells, n_objects, known, table.place)
    rows = _in_range(cells, count, table.place)
    if known is None and labels is None:
        known = names_of(rows, table, count)
    swapped = ~first_nearer(table, y, len(rows))
    rows[swapped] = rows[swapped][:, [0, 2, 1]]
    a, i, j = (np.ascontiguousarray(rows[:, k], dtype=np.int32) for k in range(3))
    _refuse_repeated(a, i, j, table.place)
    weights = weights_of(table, sample_weight, len(a))
    return Triplets(a, i, j, weights, count, known, *identified(table, len(a)))


def identified(table: AnswerTable, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers of the trial and of the participant of each row."""
    participant = np.full(count, UNKNOWN, dtype=np.int64)
    if table.participants is not None:
        participant = _codes(table.participants.tolist())
    if table.trials is None:
        return np.arange(count, dtype=np.int64), participant
    # Programs number trials from 1 for each participant; a row without a number is its own trial.
    trials = [object() if is_missing(cell) else cell for cell in table.trials.tolist()]
    return _codes(list(zip(participant.tolist(), trials, strict=True))), participant


def _codes(cells: Sequence[Any]) -> NDArray[np.int64]:
    """The same number for the same cell, from 0 in order of appearance; -1 stays as it is."""
    known: dict[Any, int] = {}
    return np.array(
        [UNKNOWN if cell == UNKNOWN else known.setdefault(cell, len(known)) for cell in cells],
        dtype=np.int64,
    )


def _table(source: Any, simulated: bool, label: str | None) -> AnswerTable:
    if isinstance(source, AnswerTable):
        return source
    if isinstance(source, (str, os.PathLike)):
        return read_table(source, simulated, label)
    stated = None if label is None else kind_of(label)
    if hasattr(source, "todense"):
        _fail("Sparse input is not supported: pass answers as rows (anchor, nearer, farther).")
    sheet = sheet_of(source)
    if sheet is not None:
        return named_or_in_order(sheet, simulated, stated)
    if not isinstance(source, (list, tuple, np.ndarray)) and hasattr(source, "__array__"):
        array = np.asarray(source)
        if array.ndim == 2:
            source = array
    if stated not in (None, TRIPLET):
        return trials_of_rows("", source, stated)
    return AnswerTable("", source)


def _fail(message: str) -> NoReturn:
    raise InvalidTriplets(message)


def _item_count(rows: NDArray[Any], n_objects: int | None, labels: Labels, place: Place) -> int:
    if n_objects is None:
        return _counted(rows, place) if labels is None else len(labels)
    if isinstance(n_objects, bool) or not isinstance(n_objects, (int, np.integer)):
        raise InvalidParameter(f"n_objects is {n_objects!r}, but must be a whole number.")
    if n_objects < MIN_ITEMS:
        raise InvalidParameter(f"n_objects is {n_objects}, but a triplet needs three items.")
    if n_objects > MAX_ITEMS:
        raise InvalidParameter(f"n_objects is {n_objects}, but must be at most {MAX_ITEMS}.")
    if labels is not None and len(labels) != n_objects:
        raise InvalidParameter(f"n_objects is {n_objects}, but there are {len(labels)} labels.")
    return int(n_objects)


def _counted(rows: NDArray[Any], place: Place) -> int:
    """Infer the number of items from the highest number that occurs."""
    row, column = np.unravel_index(int(rows.argmax()), rows.shape)
    highest = rows[row, column]
    where = f"{at_start(place(int(row)))}: {COLUMNS[column]} {highest:.0f}"
    remedy = "Number the items 0, 1, 2, …, or give them as labels (text)"
    if highest >= MAX_ITEMS:
        _fail(f"{where} is too large: there can be at most {MAX_ITEMS} items. {remedy}.")
    count = max(int(highest) + 1, MIN_ITEMS)
    used = np.count_nonzero(np.bincount(rows[rows >= 0].astype(np.int64)))
    if count > FREELY_NUMBERED and count > 2 * used:
        _fail(
            f"{where} would make {count} items, but only {used} numbers occur. {remedy}; or "
            f"pass n_objects={count} (--items {count}) if there are that many items."
        )
    return count


def _in_range(rows: NDArray[Any], count: int, place: Place) -> NDArray[Any]:
    bad = (rows < 0) | (rows >= count)
    if bad.any():
        row, column = (int(at) for at in np.argwhere(bad)[0])
        _fail(
            f"{at_start(place(row))}: {COLUMNS[column]} {rows[row, column]:.0f} is out of range: "
            f"there are {count} items, numbered 0 to {count - 1}."
        )
    return rows.astype(np.int64)


def _refuse_repeated(a: Indices, i: Indices, j: Indices, place: Place) -> None:
    repeated = (a == i) | (a == j) | (i == j)
    if repeated.any():
        row = int(np.flatnonzero(repeated)[0])
        _fail(
            f"{at_start(place(row))}: ({a[row]}, {i[row]}, {j[row]}) names an item twice. "
            "Anchor, nearer and farther must be three different items."
        )


def _aligned(values: NDArray[Any], table: AnswerTable, count: int, what: str) -> NDArray[Any]:
    """Select the values of the rows that are in the table, from one value per row of the source."""
    total = count + table.omitted if table.source_rows is None else table.source_rows
    if values.shape != (total,):
        omitted = f" ({table.omitted} of them omitted)" if table.omitted else ""
        _fail(f"{what} has shape {values.shape}, but there are {total} rows{omitted}.")
    return values if table.kept is None else values[table.kept]


def first_nearer(table: AnswerTable, y: ArrayLike | None, count: int) -> NDArray[np.bool_]:
    """Whether the first option of each row is nearer: yes, unless `y` or the table disagrees."""
    if y is not None and (table.kind == "answers" or table.responses is not None):
        _fail("The answers already say which option is nearer: y is only for questions.")
    responses = table.responses if y is None else y
    if responses is None:
        if table.kind == "questions":
            _fail(
                f"The columns of {table.name} say what was shown, but not what was chosen: add the "
                "column chosen, or pass y."
            )
        return np.ones(count, dtype=bool)
    values = np.asarray(responses)
    if values.ndim != 1:
        _fail(f"y is {responses!r:.40}, but {RULE_OF_Y}. Pass n_objects by name.")
    values = _aligned(values, table, count, "y")
    if values.dtype.kind == "b":
        return values
    good = np.isin(values, (0, 1) if not (values == -1).any() else (-1, 1))
    if not good.all():
        row = int(np.flatnonzero(~good)[0])
        _fail(
            f"{at_start(table.place(row))}: y is {values[row]!s}, but {RULE_OF_Y} (0 and -1 not "
            "mixed). Pass weights as sample_weight."
        )
    return np.asarray(values == 1)


def weights_of(table: AnswerTable, sample_weight: ArrayLike | None, count: int) -> Floats:
    """Validate the weights of the table's answers; 1 where there are none."""
    if sample_weight is not None and table.weights is not None:
        _fail("The answers already have weights: omit sample_weight, or remove those weights.")
    weights = table.weights if sample_weight is None else sample_weight
    if weights is None:
        return np.ones(count)
    try:
        array = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        _fail("Weights must be numbers, one for each answer.")
    if sample_weight is not None:
        array = _aligned(array, table, count, "sample_weight")
    elif array.shape != (count,):
        _fail(f"Weights have shape {array.shape}, but there are {count} answers.")
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        _fail(f"{at_start(table.place(row))}: weight {array[row]} is not a number of 0 or more.")
    if not array.sum() > 0:
        _fail("All weights are 0: at least one must be positive.")
    return np.ascontiguousarray(array)
