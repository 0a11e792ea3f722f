"""Snapshots of a learner: its whole state as a JSON document and arrays, and back.

The document is small whatever the size of the study: questions and answers are rows of arrays.
"""

from __future__ import annotations

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
from lore_active.rank.cross_validation import Audit, RankEvidence
from lore_active.rank.further_dimension import FurtherDimension
from lore_active.stopping.registry import STOPPING_RULES

FORMAT = 5
# Formats 3 to 5 are read. Up to format 4 some keys had other names; in format 3, questions and
# answers were in the document.
LAST_WITH_FORMER_NAMES = 4
QUESTIONS_IN_DOCUMENT = 3
Arrays = dict[str, NDArray[Any]]
# Meaning of the codes in the arrays.
CODES = {"purpose": list(PURPOSES), "state": list(STATES), "events": list(KINDS)}


def dump(learner: Learner) -> tuple[dict[str, Any], Arrays]:
    """Return the whole state; a learner made from it by `load` continues bit for bit."""
    history = learner._history
    arrays: Arrays = {
        "asked": history.asked.rows.copy(),
        "given": history.given.rows.copy(),
        "events": history.occurred.rows.copy(),
        "predictions": learner._counts.predictions.copy(),
    }
    rule: Any = learner.stopping
    if learner.stopping.name not in STOPPING_RULES:
        raise InvalidParameter(f"The stopping rule {learner.stopping.name!r} cannot be saved.")
    document = {
        "format": FORMAT,
        "n_objects": learner.n_objects,
        "seed": learner.seed,
        "selector": learner.selector.name,
        "stopping": asdict(rule),
        "min_random": learner.min_random,
        "exploration_share": learner.exploration_share,
        "lam": learner.lam,
        "asks": learner._asks,
        "version": learner._version,
        "participants": list(history.participants),
        "excluded": sorted(learner._excluded),
        "released": sorted(history.released),
        "codes": CODES,
        "audits": [
            _audit_out(audit, f"audit{index}_", arrays, index == len(learner._audits) - 1)
            for index, audit in enumerate(learner._audits)
        ],
        "model": None if learner._model is None else _model_out(learner._model, arrays),
    }
    return document, arrays


def load(document: dict[str, Any], arrays: Arrays) -> Learner:
    """Restore a learner from the result of `dump`."""
    if document.get("format") not in (FORMAT, LAST_WITH_FORMER_NAMES, QUESTIONS_IN_DOCUMENT):
        raise InvalidParameter(
            f"The snapshot has format {document.get('format')!r}, but this version reads "
            f"{QUESTIONS_IN_DOCUMENT} to {FORMAT}."
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
    )
    learner._asks = document["asks"]
    learner._version = document["version"]
    learner._excluded = set(document["excluded"])
    if document["format"] == QUESTIONS_IN_DOCUMENT:
        _document_in(learner._history, document)
        learner._counts.predictions = np.array(document["predictions"], dtype=np.float64)
    else:
        if document["codes"] != CODES:
            raise InvalidParameter("The snapshot's codes are not those of this version.")
        learner._history.take(
            arrays["asked"], arrays["given"], arrays["events"], document["participants"]
        )
        learner._counts.predictions = arrays["predictions"]
    learner._history.release(document.get("released", ()))
    for place in range(len(learner._history.given)):
        learner._count(learner._history.answer(place))
    learner._audits = [
        _audit_in(plain, f"audit{index}_", arrays) for index, plain in enumerate(document["audits"])
    ]
    if document["model"] is not None:
        learner._model = _model_in(document["model"], arrays)
    return learner


FORMER_NAMES = {
    **{"least_random": "min_random", "widen": "exploration_share", "asker": "acquisition"},
    **{"smooth_above": "map_above", "odds_below": "log_bayes_below"},
    **{"odds_above": "log_bayes_above", "imbalance": "stationarity", "happened": "events"},
    **{"model_picture": "model_aligned", "asker_embedding": "acquisition_embedding"},
    **{"asker_wider": "acquisition_wider"},
}


def _renamed(document: dict[str, Any], arrays: Arrays) -> tuple[dict[str, Any], Arrays]:
    """A snapshot of format 3 or 4 with the current names."""

    def named(part: Any) -> Any:
        if isinstance(part, dict):
            return {FORMER_NAMES.get(name, name): named(value) for name, value in part.items()}
        if isinstance(part, list):
            return [named(element) for element in part]
        return "answered" if part == "told" else part

    # In format 3 the key "events" held what format 4 called "happened".
    return named(document), {FORMER_NAMES.get(name, name): array for name, array in arrays.items()}


def _document_in(history: History, document: dict[str, Any]) -> None:
    for query, state in zip(document["queries"], document["states"], strict=True):
        history.enter(Question(**{**query, "seed": tuple(query["seed"])}), state)
    for answer in document["answers"]:
        history.add(Answer(**answer))
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
        further=tuple(
            FurtherDimension(**{**test, "chains": tuple(test["chains"])})
            for test in plain.get("further", ())
        ),
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
