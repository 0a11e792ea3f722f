"""Simulated people who take part through the service, as fast as it lets them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from lore_active.simulation.observers import Observer, ObserverNoise
from server.collection.screens import CONTINUED, Screen, Welcome
from server.collection.service import Service
from tests.support.open_study import response


class SimulatedParticipant:
    """A participant who answers from a space of their own; `step` does the next thing to do.

    `wait` lets the time pass that an answer takes, if the study's clock is turned by hand.
    """

    def __init__(
        self,
        service: Service,
        space: np.ndarray,
        seed: int,
        observer_noise: ObserverNoise = ObserverNoise(),
        name: str = "",
        always: str = "",
        rt_ms: float = 1800.0,
        blur: float = 0.0,
        wait: Callable[[float], None] = lambda ms: None,
        simulated: bool = False,
    ) -> None:
        entry = {"PROLIFIC_PID": name} if name else {}
        if simulated:
            entry["participant_label"] = f"bot-{seed}"
        welcome = service.arrive(entry, simulated=simulated)
        assert isinstance(welcome, Welcome), welcome
        self.service, self.token = service, welcome.token
        self._observer = Observer(space, observer_noise, seed)
        self._rng = np.random.default_rng(seed)
        self._always, self._rt, self._blur, self._wait = always, rt_ms, blur, wait
        self.stage = service.visit(self.token)

    def step(self) -> bool:
        """Do the next thing; tells whether there was one."""
        kind, service, token = self.stage.kind, self.service, self.token
        if kind == "consent":
            self.stage = service.consent(token, True)
        elif kind == "instructions":
            self.stage = service.begin(token)
        elif kind in ("practice", "trial"):
            self.stage = self._answered()
        elif kind in CONTINUED:
            self.stage = service.rest(token, self.stage.done)
        elif kind == "feedback":
            self.stage = service.feedback(token, "")
        elif kind == "paused":
            self.stage = service.visit(token)
            return self.stage.kind != "paused"
        else:
            return False
        return True

    def _answered(self) -> Screen:
        trial = self.stage.trial
        assert trial is not None
        chosen = self._observer.choose(trial.kind, trial.anchor, trial.options)
        places = tuple(trial.options.index(item) for item in chosen)
        rt = float(self._rng.lognormal(np.log(self._rt), 0.4))
        onset = self.service.clock()
        self._wait(rt)
        timings: dict[str, Any] = {"rt_ms": rt, "onset_at": onset, "away": []}
        if self._rng.random() < self._blur:
            timings["away"] = [["blur", 100.0, 900.0]]
        return self.service.answer(
            self.token,
            trial.token,
            response(self._always) if self._always else places,
            self.stage.visit,
            rt,
            timings,
        )


def take_turns(
    participants: list[SimulatedParticipant],
    after: Callable[[], object] | None = None,
    every: int = 10,
) -> Iterator[int]:
    """Everybody does one thing at a time; `after` is called now and then; yields what was done."""
    done, waiting = 0, list(participants)
    while waiting:
        waiting = [future for future in waiting if future.step()]
        for _ in waiting:
            done += 1
            if after is not None and done % every == 0:
                after()
            yield done
