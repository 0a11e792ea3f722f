"""The main job in half a minute: simulated people answer, the command fits and finds the rank."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from lore_active.observers import gaussian_space, simulated_answers

FOLDER = Path("build/demo")


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    file = FOLDER / "answers.csv"
    answers = simulated_answers(gaussian_space(50, 3, seed=1), count=4000, seed=2)
    np.savetxt(file, answers, fmt="%d", delimiter=",", header="anchor,nearer,farther", comments="")
    print(f"4,000 simulated answers about 50 items in 3 dimensions: {file}")
    command = ["lore-active", "fit", str(file), "--out", str(FOLDER)]
    print("$ " + " ".join(command), flush=True)
    sys.exit(subprocess.call([str(Path(sys.executable).with_name(command[0])), *command[1:]]))


if __name__ == "__main__":
    main()
