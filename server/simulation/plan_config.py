"""What to plan for: a study's settings, a pilot's estimates, and the options of the command."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from lore_active.errors import InvalidParameter
from lore_active.questions.kinds import TRIPLET, kind
from lore_active.simulation.cost import Pay
from lore_active.simulation.cost import seconds_per_trial as seconds_of
from lore_active.simulation.planning import SHARES, PlanConfig
from lore_active.stopping.sensitivity import DEFAULT_SHARE
from server.clock import now
from server.exports.log import opened
from server.monitor.reader import Reader
from server.store.sqlite.former_names import model_summary
from server.study.config import Study
from server.study.loading import load
from server.study.parsing import all_keys, rule_of
from server.study.problems import shown

# A logistic curve with temperature 1 is about a Gaussian one with this standard deviation.
LOGISTIC_DEVIATION = 1.7
# Kinds of questions that "all" stands for.
USUAL = ("triplet", "choose-1-of-4", "choose-2-of-4", "rank-2-of-8", "odd-one-out")


def plan_config(
    study: Path | None, pilot: Path | None, given: dict[str, Any], pay: dict[str, Any]
) -> PlanConfig:
    """Combine options, the study's settings and a pilot's estimates, in this order of priority."""
    known: dict[str, Any] = {}
    if study is not None:
        loaded = load(study)
        known |= _of_study(len(loaded.items), loaded.settings)
    if pilot is not None:
        estimated = _of_pilot(pilot)
        # The study's own settings take precedence; only a pilot can estimate the noise.
        known = {**estimated, **known}
    known |= {name: value for name, value in given.items() if value is not None}
    if known.get("space") is not None:
        known.setdefault("items", len(known["space"]))
    if "items" not in known:
        raise InvalidParameter(
            "Give the study's folder, or the number of items with --items, or a pilot with --from, "
            "or coordinates of the items with --space."
        )
    known["pay"] = _pay(known.get("pay", Pay()), pay)
    return PlanConfig(**known)


def for_kinds(config: PlanConfig, labels: tuple[str, ...]) -> list[PlanConfig]:
    """The configuration for each kind of question; a given duration is that of the first."""
    names = [name for label in labels for name in (USUAL if label == "all" else (label,))]
    kinds = [kind(name) for name in dict.fromkeys(names or [config.kind.label])]
    measured = config.seconds_per_trial
    # A pilot measures the duration of its own kind.
    known = config.kind if measured is None or config.kind != TRIPLET else kinds[0]
    return [
        replace(
            config,
            kind=each,
            seconds_per_trial=None if measured is None else seconds_of(each, known, measured),
        )
        for each in kinds
    ]


def _of_study(items: int, settings: Study) -> dict[str, Any]:
    """Take the part of the plan that a study's settings determine."""
    session, stopping = settings.session, settings.stopping
    return {
        "items": items,
        "trials": session.trials,
        "overhead": session.catch + session.repeat,
        "pay": settings.pay,
        "confidence": stopping.confidence,
        "rule": stopping.rule,
        "audits": stopping.audits,
        "min_answers": stopping.min_answers,
        "evidence": stopping.evidence,
        "shares": tuple(sorted({*SHARES, stopping.smallest_dimension or DEFAULT_SHARE})),
    }


def _of_pilot(path: Path) -> dict[str, Any]:
    """Take a pilot's settings; estimate noise, lapse rate and trial duration from its answers."""
    with opened(path, now) as (study, database, _):
        summary = database.read(lambda c: Reader(database, study).read(c, now()))
    model = summary.model
    if model is None or model.rank == 0:
        raise InvalidParameter(f"{path}: the pilot has no model yet, so nothing can be estimated.")
    count = len(study.items)
    z = np.frombuffer(model.embedding).reshape(count, model.rank)
    deviation = float(np.sqrt(np.mean(np.var(z, axis=0))))
    noise = (LOGISTIC_DEVIATION * model.temperature / deviation) ** 2
    ceiling = model_summary(model.summary)["ceiling"]
    # With lapse rate l, a perfect model predicts at most 1 − l/2 of the answers.
    lapse = 0.0 if ceiling is None else float(np.clip(2 * (1 - ceiling), 0.0, 0.2))
    return {
        **_of_study(count, study.settings),
        "noise": float(np.clip(noise, 0.001, 10.0)),
        "lapse": lapse,
        "seconds_per_trial": round(3600 * summary.crowd.trial_hours, 1),
    }


def _pay(pay: Pay, given: dict[str, Any]) -> Pay:
    """Override the study's pay by options, validated by the rules of study.toml."""
    changed = {name: value for name, value in given.items() if value is not None}
    keys = all_keys(Pay)
    for name, value in changed.items():
        try:
            msgspec.convert(value, keys[name].type)
        except msgspec.ValidationError:
            rule = rule_of(keys[name].type)
            raise InvalidParameter(
                f"--pay-{name.replace('_', '-')} is {shown(value)}, but {rule}."
            ) from None
    pay = msgspec.structs.replace(pay, **changed)
    if pay.is_set and not pay.currency.strip():
        raise InvalidParameter("Give the currency of the pay, for example --pay-currency EUR.")
    return pay
