"""With Salmon itself: its `OfflineEmbedding` reads our responses as it reads its own."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from click.testing import CliRunner

with warnings.catch_warnings():
    # Salmon's own business with the versions of what it imports.
    warnings.simplefilter("ignore")
    import pandas as pd
    from salmon.triplets.offline import OfflineEmbedding

from server.cli.main import main
from tests.support.open_study import Desk, Respondent

pytestmark = pytest.mark.filterwarnings("ignore")
ITEMS, TRIALS = 12, 80


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A study with everything that must not be fitted: practice, catches, skips, an exclusion."""
    toml = f"[session]\ntrials = {TRIALS}\npractice = 1\nbreak_every = 0\ncatch = 0.05\n"
    toml += "feedback = false\n[trial]\nskip = true\n[stopping]\nmin_answers = 2000\n"
    desk = Desk(tmp_path_factory.mktemp("salmon") / "words", toml, items=ITEMS)
    worker, participant = desk.worker(), Respondent(ITEMS, 2, noise=0.05)
    for number in range(5):
        stage = desk.new_participant()
        while stage.kind in ("practice", "trial"):
            desk.now += 2000
            side = "skip" if stage.done == 9 else participant.side(stage) if number < 4 else "left"
            stage = desk.answer(stage, side)
            if stage.done % 20 == 0:
                worker.turn()
    desk.control.exclude("test", 5, "always left")
    while worker.turn():
        pass
    desk.close()
    out = desk.folder.parent / "out"
    result = CliRunner().invoke(
        main, ["export", str(desk.folder), "--format", "salmon", "--out", str(out)]
    )
    assert result.exit_code == 0, result.output
    return out


def test_the_recipe_of_its_manual_works_without_change(exported, capsys):
    df = pd.read_csv(exported / "words_responses.csv")
    em = pd.read_csv(exported / "words_embedding.csv")
    x = df[["head", "winner", "loser"]].to_numpy()
    n, d = int(x.max() + 1), em.shape[1]
    assert (n, d) == (ITEMS, 2)
    train, test = x[::2], x[1::2]
    model = OfflineEmbedding(n=n, d=d, max_epochs=200, random_state=0)
    model.initialize(train, embedding=em.to_numpy())
    # The study's own coordinates, scored by Salmon: its items are ours, nearer is nearer.
    assert model.score(x) > 0.85
    assert model.score(x[:, [0, 2, 1]]) < 0.15
    model.fit(train, test, embedding=em.to_numpy())
    assert model.embedding_.shape == (n, d)
    assert model.history_[-1]["score_test"] > 0.75
    # From a random start it takes ten thousand epochs to come as far; here, that it learns.
    fresh = OfflineEmbedding(n=n, d=d, max_epochs=1000, random_state=0)
    fresh.fit(train, test)
    assert fresh.score(x) > 0.6


def test_only_what_counts_is_in_it(exported):
    ours = pd.read_csv(exported / "words_responses.csv")
    assert set(ours["puid"]) == {1, 2, 3, 4}
    catches = round(0.05 * TRIALS)
    assert len(ours) == 4 * (TRIALS - catches - 1)
    assert np.array_equal(ours["num_responses"], np.arange(1, len(ours) + 1))
