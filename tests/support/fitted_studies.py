"""Studies to draw: items of any kind, answers about a space of any rank, imported and fitted."""

from __future__ import annotations

import csv
import io
import time
from pathlib import Path

import numpy as np
from click.testing import CliRunner
from PIL import Image

from server.auth.passwords import set_password
from server.cli.main import main
from server.learning.worker import Worker
from server.study.workspace import open_study
from tests.support.experimenter_client import PASSWORD


def png(width: int, height: int, seed: int) -> bytes:
    """An image of one colour."""
    colour = tuple(np.random.default_rng(seed).integers(40, 220, 3).tolist())
    content = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(content, "PNG")
    return content.getvalue()


def words(names: list[str]) -> dict[str, bytes]:
    """Items that are words."""
    return {f"item{number:03d}.txt": name.encode() for number, name in enumerate(names)}


def pictured_study(
    folder: Path, items: dict[str, bytes], space: np.ndarray, answers: int, title: str = "Drawn"
) -> Path:
    """A study with a password and a model of so many answers to random questions."""
    (folder / "stimuli").mkdir(parents=True)
    for name, content in items.items():
        (folder / "stimuli" / name).write_bytes(content)
    (folder / "study.toml").write_text(f'title = "{title}"\nseed = 3\n')
    set_password(folder, PASSWORD)
    rng = np.random.default_rng(5)
    file = folder.with_suffix(".csv")
    with file.open("w", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerow(["anchor", "nearer", "farther"])
        for _ in range(answers):
            anchor, one, other = rng.choice(len(space), 3, replace=False)
            if np.linalg.norm(space[anchor] - space[one]) > np.linalg.norm(
                space[anchor] - space[other]
            ):
                one, other = other, one
            writer.writerow([anchor, one, other])
    done = CliRunner().invoke(main, ["import", str(file), str(folder), "--by", "number"])
    assert done.exit_code == 0, done.output
    clock = lambda: int(time.time() * 1000)  # noqa: E731
    study, database = open_study(folder, clock)
    worker = Worker(database, study, clock, time.perf_counter)
    while worker.turn():
        pass
    database.close()
    return folder
