"""The tutorial, followed from its first command to its last."""

from __future__ import annotations

import csv

from tests.following import ROOT, follow


def test_the_tutorial_can_be_followed_to_its_end(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = follow(ROOT / "docs" / "tutorial.md")
    assert done[0].startswith("lore-active new")
    with (tmp_path / "data" / "csv" / "answers.csv").open(encoding="utf-8", newline="") as file:
        answers = list(csv.DictReader(file))
    assert len(answers) > 50
    assert (tmp_path / "public" / "dataset_description.json").exists()
    assert done[-1].startswith("lore-active report")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Colours" in page
