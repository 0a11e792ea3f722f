"""The tutorial, followed from its first command to its last."""

from __future__ import annotations

import csv
import html
import re

from tests.support.documented_steps import ROOT, follow

TRIALS = 40


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def text_of(page):
    return html.unescape(re.sub(r"<script.*?</script>|<[^>]+>", " ", page, flags=re.S))


def test_the_tutorial_leads_from_nothing_to_a_real_participant_in_the_report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = follow(ROOT / "docs" / "tutorial.md")
    assert done[0].startswith("lore-active new")
    # The rehearsal: bots only, and called so.
    rehearsed = text_of((tmp_path / "rehearsal.html").read_text(encoding="utf-8"))
    assert "Simulated data" in rehearsed and "were simulated" in rehearsed
    # The study itself: anyone who took part over HTTP, and no bot.
    stored = rows(tmp_path / "data/csv/answers.csv")
    answers = [record for record in stored if record["purpose"] != "practice"]
    assert len(answers) == TRIALS
    assert {record["simulated"] for record in stored} == {"0"}
    assert len({record["participant"] for record in stored}) == 1
    assert (tmp_path / "public" / "dataset_description.json").exists()
    assert done[-1].startswith("lore-active report colours")
    page = text_of((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "Colours" in page and f"{TRIALS} answers from 1 participant" in page
    assert f"1 participant gave {TRIALS} answers" in page
    assert "Simulated data" not in page and "were simulated" not in page
