"""A learner as plain data and back: a JSON document and arrays, nothing else.

The document is small whatever the study's size: each question and answer is a row of an array.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lore_active.acquisition.model import Asker
from lore_active.acquisition.selectors import selector_named
from lore_active.embedding.solver import Solution
from lore_active.errors import InvalidParameter
from lore_active.learner.history import KINDS, PURPOSES, STATES, Ledger
from lore_active.learner.learner import Answer, Learner, Query
from lore_active.learner.model import Model
from lore_active.rank.cross_validation import Audit, RankEvidence
from lore_active.stopping.rules import RankSettled, StoppingRule, Unchanged

FORMAT = 4
# Questions and answers stood in the document, one by one.
SPELT_OUT = 3
Arrays = dict[str, NDArray[Any]]
# What small numbers in the arrays stand for.
CODES = {"purpose": list(PURPOSES), "state": list(STATES), "happened": list(KINDS)}
RULES: dict[str, type[RankSettled] | type[Unchanged]] = {
    "rank_settled": RankSettled,
    "unchanged": Unchanged,
}


def dump(learner: Learner) -> tuple[dict[str, Any], Arrays]:
    """The whole state: `load` gives a learner that goes on exactly as this one would."""
    ledger = learner._ledger
    arrays: Arrays = {
        "asked": ledger.asked.rows.copy(),
        "given": ledger.given.rows.copy(),
        "happened": ledger.happened.rows.copy(),
        "predictions": learner._tally.predictions.copy(),
    }
    rule: Any = learner.stopping
    if learner.stopping.name not in RULES:
        raise InvalidParameter(f"The stopping rule {learner.stopping.name!r} cannot be saved.")
    document = {
        "format": FORMAT,
        "n_objects": learner.n_objects,
        "seed": learner.seed,
        "selector": learner.selector.name,
        "stopping": asdict(rule),
        "least_random": learner.least_random,
        "widen": learner.widen,
        "lam": learner.lam,
        "asks": learner._asks,
        "version": learner._version,
        "participants": list(ledger.participants),
        "excluded": sorted(learner._excluded),
        "released": sorted(ledger.released),
        "codes": CODES,
        "audits": [
            _audit_out(audit, f"audit{index}_", arrays, index == len(learner._audits) - 1)
            for index, audit in enumerate(learner._audits)
        ],
        "model": None if learner._model is None else _model_out(learner._model, arrays),
    }
    return document, arrays


def load(document: dict[str, Any], arrays: Arrays) -> Learner:
    """A learner from what `dump` gave."""
    if document.get("format") not in (FORMAT, SPELT_OUT):
        raise InvalidParameter(
            f"The snapshot has format {document.get('format')!r}, but this version reads "
            f"{SPELT_OUT} and {FORMAT}."
        )
    rule: StoppingRule = RULES[document["stopping"]["name"]](**document["stopping"])
    learner = Learner(
        document["n_objects"],
        document["seed"],
        selector_named(document["selector"]),
        rule,
        document["least_random"],
        document["widen"],
        lam=document.get("lam"),
    )
    learner._asks = document["asks"]
    learner._version = document["version"]
    learner._excluded = set(document["excluded"])
    if document["format"] == SPELT_OUT:
        _spelt_out_in(learner._ledger, document)
        learner._tally.predictions = np.array(document["predictions"], dtype=np.float64)
    else:
        if document["codes"] != CODES:
            raise InvalidParameter("The snapshot's codes are not those of this version.")
        learner._ledger.take(
            arrays["asked"], arrays["given"], arrays["happened"], document["participants"]
        )
        learner._tally.predictions = arrays["predictions"]
    learner._ledger.release(document.get("released", ()))
    for place in range(len(learner._ledger.given)):
        learner._count(learner._ledger.answer(place))
    learner._audits = [
        _audit_in(one, f"audit{index}_", arrays) for index, one in enumerate(document["audits"])
    ]
    if document["model"] is not None:
        learner._model = _model_in(document["model"], arrays)
    return learner


def _spelt_out_in(ledger: Ledger, document: dict[str, Any]) -> None:
    for one, state in zip(document["queries"], document["states"], strict=True):
        ledger.enter(Query(**{**one, "seed": tuple(one["seed"])}), state)
    for one in document["answers"]:
        ledger.add(Answer(**one))
    for kind, _ in document["events"]:
        ledger.note(kind)


def _model_out(model: Model, arrays: Arrays) -> dict[str, Any]:
    for name in ("embedding", "singular_values", "picture"):
        arrays["model_" + name] = getattr(model, name)
    for name in ("embedding", "wider"):
        arrays["asker_" + name] = getattr(model.asker, name)
    names = ("version", "up_to", "rank", "lam", "temperature", "objective")
    plain: dict[str, Any] = {name: getattr(model, name) for name in names}
    plain["asker"] = {name: getattr(model.asker, name) for name in ("noise", "accuracy", "judged")}
    return plain


def _model_in(plain: dict[str, Any], arrays: Arrays) -> Model:
    names = ("embedding", "singular_values", "picture")
    held: dict[str, Any] = {name: np.array(arrays["model_" + name]) for name in names}
    asking: dict[str, Any] = {
        name: np.array(arrays["asker_" + name]) for name in ("embedding", "wider")
    }
    return Model(**{**plain, **held, "asker": Asker(**plain["asker"], **asking)})


def _audit_out(audit: Audit, prefix: str, arrays: Arrays, last: bool) -> dict[str, Any]:
    # Only the last audit's fits are ever started from.
    kept = audit if last else replace(audit, solution=None)
    return {
        "answers": audit.answers,
        "rank": audit.rank,
        "lam": audit.lam,
        "temperature": audit.temperature,
        "evidence": [asdict(one) for one in audit.evidence],
        "below": audit.below,
        "above": audit.above,
        "smooth_above": audit.smooth_above,
        "odds_below": audit.odds_below,
        "odds_above": audit.odds_above,
        "solution": _solution_out(kept.solution, prefix + "solution_", arrays),
    }


def _audit_in(plain: dict[str, Any], prefix: str, arrays: Arrays) -> Audit:
    return Audit(
        answers=plain["answers"],
        rank=plain["rank"],
        lam=plain["lam"],
        temperature=plain["temperature"],
        evidence=tuple(RankEvidence(**one) for one in plain["evidence"]),
        solution=_solution_in(plain["solution"], prefix + "solution_", arrays),
        **{
            name: None if plain[name] is None else tuple(plain[name])
            for name in ("below", "above", "smooth_above")
        },
        # Earlier audits weighed no odds.
        odds_below=plain.get("odds_below"),
        odds_above=plain.get("odds_above"),
    )


def _solution_out(solution: Solution | None, prefix: str, arrays: Arrays) -> dict[str, Any] | None:
    if solution is None:
        return None
    arrays[prefix + "embedding"] = solution.embedding
    arrays[prefix + "singular_values"] = solution.singular_values
    names = ("objective", "imbalance", "iterations", "converged", "curvature")
    return {name: getattr(solution, name) for name in names}


def _solution_in(plain: dict[str, Any] | None, prefix: str, arrays: Arrays) -> Solution | None:
    if plain is None:
        return None
    names = ("embedding", "singular_values")
    held: dict[str, Any] = {name: np.array(arrays[prefix + name]) for name in names}
    return Solution(**plain, **held)
