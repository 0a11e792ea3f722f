"""A small study for reports, with people and texts that mean harm."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from lore_active.simulation.observers import ObserverNoise, gaussian_space
from server.cli.main import main
from tests.support.open_study import Desk
from tests.support.simulated_participants import SimulatedParticipant, take_turns

HARM = (
    "</script><script>window.harmed=1</script><!--<script>"
    "<img src=x onerror=window.harmed=2>\"'`${alert(1)}&lt;\u202eend"
)
TITLE = "<b onmouseover=window.harmed=3>Words</b></title><script>window.harmed=4</script>"
WHO = "5f0000c0ffee</td><script>window.harmed=5</script>"
CODE = "SECRET-CODE-77"
QUESTION = "Which is <i>more</i> alike?</script>"
SETTINGS = f"""
[trial]
question = {json.dumps(QUESTION)}
skip = true
[session]
trials = 50
practice = 1
break_every = 0
feedback = false
[completion]
code = "{CODE}"
"""


def collected(folder: Path, participants: int = 4) -> Desk:
    """Everybody has answered, the fourth carelessly; they are excluded, and the study was ended."""
    (folder / "stimuli").mkdir(parents=True)
    for number in range(12):
        text = HARM if number == 3 else f"word {number}"
        (folder / "stimuli" / f"word{number:02d}.txt").write_text(text)
    toml = f"title = {json.dumps(TITLE)}\nseed = 3\n{SETTINGS}"
    (folder / "study.toml").write_text(toml)
    desk = Desk(folder)
    worker, space = desk.worker(), gaussian_space(12, 2, 5)

    def tick() -> None:
        desk.now += 4000
        worker.turn()

    careful = ObserverNoise(noise=0.05)
    crowd = [
        SimulatedParticipant(desk.service, space, seed, careful, wait=desk.wait)
        for seed in range(1, participants)
    ]
    crowd.append(SimulatedParticipant(desk.service, space, 9, always="left", rt_ms=90.0, name=WHO))
    for _ in take_turns(crowd, tick):
        pass
    desk.control.exclude(f"Ada{HARM}", participants, f"{HARM} It was {WHO}.")
    desk.control.stop("Ada", f"Enough. {HARM}")
    while worker.turn():
        pass
    return desk


def written(*arguments: object) -> dict[str, Any]:
    """What `lore-active report … --json` says."""
    result = CliRunner().invoke(main, ["report", *map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def carried(page: str) -> Any:
    """The numbers that a page carries."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found
    return json.loads(found[1])
