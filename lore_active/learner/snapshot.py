"""Snapshots of a learner: its whole state as a JSON document and arrays, and back.

The document is small whatever the size of the study: questions and answers are rows of arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lore_active.acquisition.model import AcquisitionModel
from lore_active.acquisition.registry import SELECTORS
from lore_active.embedding.solver import Solution
from lore_active.errors import InvalidParameter
from lore_active.learner.history import KINDS, PURPOSES, STATES, History
from lore_active.learner.learner import Learner
from lore_active.learner.model import Model
from lore_active.questions.question import Answer, Question
from lore_active.rank.audit import Audit, RankEvidence
from lore_active.rank.bayes_factor import FurtherDimension
from lore_active.rank.comparison import WarmStarts
from lore_active.rank.fits import Starts
from lore_active.stopping.registry import STOPPING_RULES

FORMAT = 9
# Formats 3 to 9 are read. Up to format 8 all questions were triplets; up to format 7 they had no
# ids, but were numbered from 0; up to format 6 some keys had other names; up to format 5, audits
# left no starts for the next; in format 3, questions and answers were in the document.
READABLE = (3, 4, 5, 6, 7, 8, FORMAT)
LAST_WITHOUT_IDS = 7
LAST_WITH_FORMER_NAMES = 6
QUESTIONS_IN_DOCUMENT = 3
Arrays = dict[str, NDArray[Any]]
# Meaning of the codes in the arrays.
CODES: dict[str, list[str]] = {
    "purpose": list(PURPOSES),
    "state": list(STATES),
    "events": list(KINDS),
}


def dump(learner: Learner) -> tuple[dict[str, Any], Arrays]:
    """Return the whole state; a learner made from it by `load` continues bit for bit."""
    history = learner._history
    arrays: Arrays = {
        "asked": history.asked.rows.copy(),
        "given": history.given.rows.copy(),
        "events": history.occurred.rows.copy(),
        "predictions": learner._counts.predictions.copy(),
        "predicted": learner._counts.predicted.copy(),
    }
    rule: Any = learner.stopping
    models = learner._models
    if learner.stopping.name not in STOPPING_RULES:
        raise InvalidParameter(f"The stopping rule {learner.stopping.name!r} cannot be saved.")
    document = {
        "format": FORMAT,
        "n_objects": learner.n_objects,
        "kind": learner.kind.label,
        "seed": learner.seed,
        "selector": learner.selector.name,
        "stopping": asdict(rule),
        "min_random": learner.min_random,
        "exploration_share": learner.exploration_share,
        "lam": learner.lam,
        "asks": learner._asks,
        "version": models.version,
        "participants": list(history.participants),
        "excluded": sorted(learner._excluded),
        "released": sorted(history.released),
        "codes": CODES,
        "audits": [
            _audit_out(audit, f"audit{index}_", arrays, index == len(models.audits) - 1)
            for index, audit in enumerate(models.audits)
        ],
        "model": None if models.current is None else _model_out(models.current, arrays),
        "warm": _warm_out(models.warm, arrays),
    }
    return document, arrays


def load(document: dict[str, Any], arrays: Arrays, ids: Sequence[int] | None = None) -> Learner:
    """Restore a learner from the result of `dump`.

    `ids` are those of the first questions, or more, for snapshots of formats that had none.
    """
    if document.get("format") not in READABLE:
        raise InvalidParameter(
            f"The snapshot has format {document.get('format')!r}, but this version reads "
            f"{READABLE[0]} to {FORMAT}."
        )
    if document["format"] <= LAST_WITH_FORMER_NAMES:
        document, arrays = _renamed(document, arrays)
    rule = STOPPING_RULES.make(document["stopping"]["name"], **document["stopping"])
    learner = Learner(
        document["n_objects"],
        document["seed"],
        SELECTORS.make(document["selector"]),
        rule,
        document["min_random"],
        document["exploration_share"],
        lam=document.get("lam"),
        kind=document.get("kind", "triplet"),
    )
    learner._asks = document["asks"]
    learner._models.version = document["version"]
    learner._excluded = set(document["excluded"])
    if document["format"] == QUESTIONS_IN_DOCUMENT:
        _document_in(learner._history, document)
        learner._counts.predictions = np.array(document["predictions"], dtype=np.float64)
    else:
        if not _same_codes(document["codes"]):
            raise InvalidParameter("The snapshot's codes are not those of this version.")
        learner._history.take(
            arrays["asked"], arrays["given"], arrays["events"], document["participants"]
        )
        learner._counts.predictions = arrays["predictions"]
        if "predicted" in arrays:
            learner._counts.predicted = arrays["predicted"]
    if document["format"] <= LAST_WITHOUT_IDS and ids is not None:
        count = len(learner._history.asked)
        if len(ids) < count:
            raise InvalidParameter(f"The snapshot has {count} questions, but only {len(ids)} ids.")
        learner._history.renumber(np.array(ids[:count], dtype=np.int64))
    learner._history.release(document.get("released", ()))
    for index in range(len(learner._history.given)):
        learner._count(learner._history.answer(index))
    learner._models.audits = [
        _audit_in(plain, f"audit{index}_", arrays) for index, plain in enumerate(document["audits"])
    ]
    if document["model"] is not None:
        learner._models.current = _model_in(document["model"], arrays)
    if "warm" in document:
        learner._models.warm = _warm_in(document["warm"], arrays)
    return learner


def _same_codes(codes: dict[str, list[str]]) -> bool:
    """Whether codes mean what they mean now; there may be more of them now."""
    return set(codes) == set(CODES) and all(
        CODES[name][: len(known)] == known for name, known in codes.items()
    )


def _warm_out(warm: WarmStarts, arrays: Arrays) -> dict[str, Any]:
    names = ("lam", "noise", "rank", "lambdas", "checks", "checked")
    plain: dict[str, Any] = {name: getattr(warm, name) for name in names}
    plain["folds"] = {}
    for part, starts in warm.folds.items():
        kinds = {"penalised": starts.penalised, "map": starts.map}
        plain["folds"][str(part)] = {name: sorted(fits) for name, fits in kinds.items()}
        for name, fits in kinds.items():
            for rank, z in fits.items():
                arrays[f"warm{part}_{name}{rank}"] = z
    return plain


def _warm_in(plain: dict[str, Any], arrays: Arrays) -> WarmStarts:
    folds = {
        int(part): Starts(
            **{
                name: {rank: np.array(arrays[f"warm{part}_{name}{rank}"]) for rank in ranks}
                for name, ranks in kinds.items()
            }
        )
        for part, kinds in plain["folds"].items()
    }
    return WarmStarts(**{**plain, "folds": folds, "lambdas": tuple(plain["lambdas"])})


FORMER_NAMES = {
    **{"least_random": "min_random", "widen": "exploration_share", "asker": "acquisition"},
    **{"smooth_above": "map_above", "odds_below": "log_bayes_below"},
    **{"odds_above": "log_bayes_above", "imbalance": "stationarity", "happened": "events"},
    **{"model_picture": "model_aligned", "asker_embedding": "acquisition_embedding"},
    **{"asker_wider": "acquisition_wider", "worse": "difference"},
}


def _renamed(document: dict[str, Any], arrays: Arrays) -> tuple[dict[str, Any], Arrays]:
    """A snapshot of format 3 to 6 with the current names."""

    def named(part: Any) -> Any:
        if isinstance(part, dict):
            return {FORMER_NAMES.get(name, name): named(value) for name, value in part.items()}
        if isinstance(part, list):
            return [named(element) for element in part]
        if isinstance(part, str) and part.startswith("prior "):
            # What the server called the imported files among those who answered.
            return part.replace("prior", "import", 1)
        return "answered" if part == "told" else part

    # In format 3 the key "events" held what format 4 called "happened".
    return named(document), {FORMER_NAMES.get(name, name): array for name, array in arrays.items()}


def _document_in(history: History, document: dict[str, Any]) -> None:
    for question, state in zip(document["queries"], document["states"], strict=True):
        options = (question.pop("left"), question.pop("right"))
        seed = tuple(question.pop("seed"))
        history.enter(Question(**question, options=options, seed=seed), state)
    for answer in document["answers"]:
        items = (answer["nearer"], answer["farther"])
        history.add(
            Answer(answer["query"], answer["anchor"], items, items[:1], answer["participant"])
        )
    for kind, _ in document["events"]:
        history.note(kind)


def _model_out(model: Model, arrays: Arrays) -> dict[str, Any]:
    for name in ("embedding", "singular_values", "aligned"):
        arrays["model_" + name] = getattr(model, name)
    for name in ("embedding", "wider"):
        arrays["acquisition_" + name] = getattr(model.acquisition, name)
    names = ("version", "up_to", "rank", "lam", "temperature", "objective")
    plain: dict[str, Any] = {name: getattr(model, name) for name in names}
    plain["acquisition"] = {
        name: getattr(model.acquisition, name) for name in ("noise", "accuracy", "judged")
    }
    return plain


def _model_in(plain: dict[str, Any], arrays: Arrays) -> Model:
    names = ("embedding", "singular_values", "aligned")
    held: dict[str, Any] = {name: np.array(arrays["model_" + name]) for name in names}
    acquisition: dict[str, Any] = {
        name: np.array(arrays["acquisition_" + name]) for name in ("embedding", "wider")
    }
    return Model(
        **{**plain, **held, "acquisition": AcquisitionModel(**plain["acquisition"], **acquisition)}
    )


def _audit_out(audit: Audit, prefix: str, arrays: Arrays, last: bool) -> dict[str, Any]:
    # Only the last audit's solution is used as a start.
    kept = audit if last else replace(audit, solution=None)
    return {
        "answers": audit.answers,
        "rank": audit.rank,
        "lam": audit.lam,
        "temperature": audit.temperature,
        "evidence": [asdict(evidence) for evidence in audit.evidence],
        "below": audit.below,
        "above": audit.above,
        "map_above": audit.map_above,
        "log_bayes_below": audit.log_bayes_below,
        "log_bayes_above": audit.log_bayes_above,
        "further": [asdict(test) for test in audit.further],
        "fewer": [asdict(test) for test in audit.fewer],
        "solution": _solution_out(kept.solution, prefix + "solution_", arrays),
    }


def _audit_in(plain: dict[str, Any], prefix: str, arrays: Arrays) -> Audit:
    return Audit(
        answers=plain["answers"],
        rank=plain["rank"],
        lam=plain["lam"],
        temperature=plain["temperature"],
        evidence=tuple(RankEvidence(**evidence) for evidence in plain["evidence"]),
        solution=_solution_in(plain["solution"], prefix + "solution_", arrays),
        **{
            name: None if plain[name] is None else tuple(plain[name])
            for name in ("below", "above", "map_above")
        },
        # Earlier audits had no marginal likelihoods.
        log_bayes_below=plain.get("log_bayes_below"),
        log_bayes_above=plain.get("log_bayes_above"),
        further=_tests_in(plain, "further"),
        fewer=_tests_in(plain, "fewer"),
    )


def _tests_in(plain: dict[str, Any], name: str) -> tuple[FurtherDimension, ...]:
    return tuple(
        FurtherDimension(
            **{
                **test,
                **{each: tuple(test.get(each, ())) for each in ("chains", "against", "there")},
            }
        )
        for test in plain.get(name, ())
    )


def _solution_out(solution: Solution | None, prefix: str, arrays: Arrays) -> dict[str, Any] | None:
    if solution is None:
        return None
    arrays[prefix + "embedding"] = solution.embedding
    arrays[prefix + "singular_values"] = solution.singular_values
    names = ("objective", "stationarity", "iterations", "converged", "curvature")
    return {name: getattr(solution, name) for name in names}


def _solution_in(plain: dict[str, Any] | None, prefix: str, arrays: Arrays) -> Solution | None:
    if plain is None:
        return None
    names = ("embedding", "singular_values")
    held: dict[str, Any] = {name: np.array(arrays[prefix + name]) for name in names}
    return Solution(**plain, **held)
