"""The report: its numbers, its words, what it leaves out, and what it cannot be made to do."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from lore_active.questions.kinds import kind as kind_by_label
from server.cli.main import main
from server.exports.downloads import DOWNLOADS
from server.monitor.feed import Feed
from server.paths import place
from server.report import methods, page, stimuli
from server.report.contents import contents, without_names
from server.report.data import MAX_NUMBERS
from server.report.references import cited
from server.report.report import report as make_report
from server.store.summaries import EventRow
from server.study.samples import png
from tests.support.live_server import write_study
from tests.support.open_study import Desk
from tests.support.report_study import CODE, HARM, QUESTION, WHO, carried, collected, written


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    desk = collected(tmp_path_factory.mktemp("report") / "words")
    yield desk
    desk.close()


@pytest.fixture(scope="module")
def made(desk):
    return make_report(desk.database, desk.study, desk.clock)


class Seen(HTMLParser):
    """Elements, and the text outside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self._inside = tag

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)


# ---- numbers ------------------------------------------------------------------------------------


def test_it_carries_what_the_monitor_shows(desk, made):
    monitor = json.loads(Feed(desk.database, desk.study, desk.clock).update(False).plain)
    shown = carried(made.page)["shown"]
    assert set(shown) == {"dimensions", "stopping", "accuracy", "spectrum", "map"}
    for name, part in shown.items():
        assert part == monitor[name], name
    text = Seen(made.page).text
    assert monitor["where"]["headline"] in text
    assert monitor["accuracy"]["message"] in text
    for criterion in monitor["stopping"]["criteria"]:
        assert criterion["message"] in text


def test_the_log_says_in_words_what_happened_and_by_whom(made):
    asked = {"done": 29, "median_ms": 375}
    event = EventRow(9, 1_000, "participant", "slow_down", 4, asked)
    found = replace(made.data, events=[*made.data.events, event])
    rows = [(one["what"], one["by"]) for one in contents(found, made.items, False)["events"]]
    assert rows == [
        ("P4 excluded", "experimenter"),
        ("Study stopped", "experimenter"),
        # Nobody did that but a program.
        (
            "P4 was asked to take their time after 29 trials (median of the last ones: 0.4 s)",
            "",
        ),
    ]


def test_the_methods_have_this_studys_numbers(desk, made):
    section = dict(methods.paragraphs(made.data))
    count = desk.rows("SELECT count(*) FROM answers a JOIN queries q ON q.id = a.query "
                      "WHERE purpose <> 'practice'")[0][0]  # fmt: skip
    assert count == 200
    assert "4 people opened the study: 4 completed their session." in section["Participants"]
    assert "4 participants gave 200 answers" in section["Participants"]
    assert (
        "1 participant was excluded by the experimenter, and their 50 answers"
        in (section["Participants"])
    )
    assert "12 items (text)" in section["Procedure"]
    assert QUESTION in section["Procedure"]
    for purpose, many in desk.rows(
        "SELECT purpose, count(*) FROM answers a JOIN queries q ON q.id = a.query "
        "WHERE purpose <> 'practice' GROUP BY purpose"
    ):
        assert f"{many} ({many / 2:.1f} %) were to questions" in section["Procedure"], purpose
    (fitted,) = desk.rows("SELECT answers FROM models ORDER BY version DESC LIMIT 1")[0]
    assert f"fitted to {fitted} answers" in section["Model and number of dimensions"]
    assert "at least 48 answers" in section["Stopping rule"]
    assert "confidence of 0.975" in section["Stopping rule"]
    assert "The experimenter ended collection after 200 answers" in section["Outcome"]
    share = made.data.shown["accuracy"]
    assert f"{100 * share['value']:.1f} % were predicted correctly" in section["Outcome"]
    assert (
        f"interval: {100 * share['low']:.1f} % to {100 * share['high']:.1f} %" in section["Outcome"]
    )
    assert "seed 3" in section["Software"]
    assert re.search(
        r"lore-active \S+, Python \S+, NumPy \S+, SciPy \S+ and numba", section["Software"]
    )


def test_the_methods_state_the_audits_that_the_rule_needs(made):
    stopping = made.data.study.settings.stopping
    assert stopping.audits == 0
    for rule, audits in (("rank_settled", 5), ("smallest_dimension", 3)):
        shown = made.data.shown | {"stopping": {"criteria": []}}
        summary = replace(made.data.summary, rule=rule)
        section = dict(methods.paragraphs(replace(made.data, summary=summary, shown=shown)))
        assert f"had been the same in {audits} consecutive audits" in section["Stopping rule"]


@pytest.mark.parametrize(
    ("label", "procedure", "selection", "modelling"),
    [
        (
            "rank-2-of-8",
            "by choosing 2 of the 8, the most similar one first",
            "composed option by option",
            "an option is picked with a probability proportional to exp(−distance).",
        ),
        (
            "choose-2-of-4",
            "by choosing 2 of the 4, in any order",
            "composed option by option",
            "summed over the orders in which options may have been picked.",
        ),
        (
            "choose-6-of-12",
            "by choosing 6 of the 12, in any order",
            "composed option by option",
            "(a composite likelihood).",
        ),
        (
            "odd-one-out",
            "saw three items",
            "and items were balanced",
            "two items remain with a probability proportional to exp(−distance).",
        ),
    ],
)
def test_the_methods_describe_the_kind_of_questions(made, label, procedure, selection, modelling):
    def section_texts(label, selector="fisher"):
        settings = made.data.study.settings
        learning = structs.replace(settings.learning, selector=selector)
        settings = structs.replace(settings, learning=learning)
        study = structs.replace(made.data.study, settings=settings)
        summary = replace(made.data.summary, kind=kind_by_label(label))
        return dict(methods.paragraphs(replace(made.data, study=study, summary=summary)))

    section = section_texts(label)
    assert procedure in section["Procedure"]
    assert selection in section["Question selection"]
    assert modelling in section["Model and number of dimensions"]
    assert "the mean over comparisons of softplus" in section["Model and number of dimensions"]
    # Questions are not composed if they have no anchor, or if the selector takes random ones.
    anchored = label != "odd-one-out"
    assert ("anchors were balanced" in section["Question selection"]) == anchored
    assert ("composed" in section["Question selection"]) == anchored
    assert "composed" not in section_texts(label, "infotuple")["Question selection"]
    assert "composed" not in section_texts("triplet")["Question selection"]


@pytest.mark.parametrize("rule", ["rank_settled", "smallest_dimension"])
def test_whatever_the_text_cites_is_in_the_references_and_the_other_way_round(made, rule):
    found = replace(made.data, summary=replace(made.data.summary, rule=rule))
    text = " ".join(words for _, words in methods.paragraphs(found))
    named = set(re.findall(r"(\w+)(?: et al\.| & \w+)?,? (?:et al\., )?(19\d\d|20\d\d)", text))
    references = cited("fisher", rule)
    for name, year in named - {("November", "1970"), ("January", "1970")}:
        assert any(reference.startswith(name) and year in reference for reference in references), (
            name
        )
    for reference in references:
        name, year = reference.split(",")[0], re.search(r"\((\d{4})\)", reference)
        assert year
        assert (name, year[1]) in named, reference


@pytest.mark.parametrize("selector", ["fisher", "uncertainty", "random"])
def test_every_selector_has_a_description_and_references(selector):
    assert len(cited(selector, "rank_settled")) >= 8
    assert cited(selector, "rank_settled") == sorted(
        cited(selector, "rank_settled"), key=str.casefold
    )


def test_the_map_over_time_ends_with_the_newest_and_stays_small(made):
    snapshots = made.data.snapshots
    answers = [snapshot["answers"] for snapshot in snapshots]
    assert answers == sorted(set(answers))
    assert 3 <= len(snapshots) <= 16
    assert "map" not in snapshots[-1]
    size = sum(len(snapshot["map"]["positions"]) for snapshot in snapshots[:-1])
    assert 0 < size < MAX_NUMBERS
    asked = [sum(map(sum, snapshot["map"]["asked"])) for snapshot in snapshots[:-1]]
    assert asked == sorted(asked)


# ---- what is left out ---------------------------------------------------------------------------


def test_no_participant_is_named_unless_asked_for(desk, made):
    assert "c0ffee" not in made.page
    assert "Ada" not in made.page
    assert "It was P4" in Seen(made.page).text
    named = make_report(desk.database, desk.study, desk.clock, with_names=True).page
    text = Seen(named).text
    assert WHO in text
    assert "Ada" in text


def test_ids_are_taken_out_of_texts():
    class Excluded:
        id, external = 7, "PROLIFIC_PID=abc123"

    assert without_names("It was abc123, or PROLIFIC_PID=abc123.", [Excluded]) == (
        "It was P7, or P7."
    )


def test_codes_stay_at_home(made):
    assert CODE not in made.page


def test_links_that_name_participants_are_not_listed(tmp_path):
    desk = Desk(tmp_path / "new")
    try:
        desk.service.arrive({"PROLIFIC_PID": "nobodys-business", "SESSION_ID": "first"})
        desk.service.arrive({"PROLIFIC_PID": "nobodys-business", "SESSION_ID": "second"})
        assert desk.rows("SELECT kind FROM events") == [("entry",)]
        page = "".join(DOWNLOADS["report.html"].write(desk.database, desk.study))
        watch = Feed(desk.database, desk.study, desk.clock)
        assert b"nobodys-business" in watch.update(True).plain
        assert b"nobodys-business" not in watch.update(False).plain
    finally:
        desk.close()
    assert page.startswith("<!DOCTYPE html>")
    assert "nobodys-business" not in page


# ---- harm ---------------------------------------------------------------------------------------


def test_hostile_texts_stay_texts(made):
    seen = Seen(made.page)
    # Three scripts and the numbers; an injected one would be a fifth.
    assert seen.tags.count("script") == 4
    assert seen.tags.count("title") == 1
    assert "img" not in seen.tags
    assert not [name for name, _ in seen.attributes if name.startswith("on")]
    assert HARM[:40] in seen.text
    assert HARM in [item["text"] for item in carried(made.page)["items"]]


def test_the_page_names_no_url_to_fetch(made):
    seen = Seen(made.page)
    fetched = [value for name, value in seen.attributes if name in ("src", "href", "action")]
    assert all(value.startswith(("#", "data:")) for value in fetched)
    assert "link" in seen.tags
    assert seen.tags.count("link") == 1


@given(st.lists(st.text() | st.integers(-(2**53), 2**53)))
def test_numbers_and_texts_survive_being_made_harmless(value):
    text = page.harmless(value)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == value


def test_scripts_that_would_end_themselves_are_refused():
    with pytest.raises(ValueError, match="would end its own element"):
        page.inside("x = '</SCRIPT>'", "script")


# ---- one drawing code ---------------------------------------------------------------------------


def test_the_monitors_own_modules_are_in_the_page(made):
    static = place("static")
    for name in ("charts", "map", "axes", "format", "figures"):
        lines = (static / "monitor" / f"{name}.js").read_text().splitlines()
        body = [line for line in lines if not line.startswith(("import", "export"))]
        assert "\n".join(body[-3:]) in made.page, name
        assert f'modules["monitor/{name}.js"]' in made.page


def test_a_script_that_cannot_be_bundled_is_reported(tmp_path):
    (tmp_path / "one.js").write_text('import other from "./two.js";\n')
    with pytest.raises(ValueError, match=r"one\.js: unsupported import or export in a report"):
        page.bundle(tmp_path, "one.js")


# ---- the command --------------------------------------------------------------------------------


def test_a_folder_and_its_log_give_the_same_report(desk, tmp_path):
    output = written(desk.folder, "-o", tmp_path / "a" / "one.html")
    assert output["answers"] == 200
    assert output["bytes"] == (tmp_path / "a" / "one.html").stat().st_size < 3_000_000
    result = CliRunner().invoke(
        main, ["export", str(desk.folder), "--format", "log", "--out", str(tmp_path)]
    )
    assert result.exit_code == 0
    log = tmp_path / "words.log.jsonl"
    again = written(log)
    assert again["file"] == str(tmp_path / "report.html")
    assert {**again, "file": "", "seconds": 0} == {**output, "file": "", "seconds": 0}
    pages = [(tmp_path / name).read_text() for name in ("a/one.html", "report.html")]
    assert carried(pages[0]) == carried(pages[1])
    made = r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"
    assert re.sub(made, "", pages[0]) == re.sub(made, "", pages[1])


def test_what_was_written_before_is_replaced_only_if_it_is_a_report(desk, tmp_path):
    out = tmp_path / "report.html"
    written(desk.folder, "-o", out)
    first = out.stat().st_size
    written(desk.folder, "-o", out)
    assert out.stat().st_size == first
    precious = tmp_path / "thesis.html"
    precious.write_text("chapter one")
    assert _refused(desk.folder, "-o", precious) == (
        f"lore-active: {precious} already exists and is not a report; it was not overwritten.\n"
    )
    assert precious.read_text() == "chapter one"
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["report.html", "thesis.html"]


def test_bad_input_and_unwritable_paths_are_one_sentence(desk, tmp_path):
    (tmp_path / "file").write_text("")
    below = _refused(desk.folder, "-o", tmp_path / "file" / "report.html")
    assert below.startswith(f"lore-active: {tmp_path / 'file'}")
    assert below.count("\n") == 1
    assert "is a folder" in _refused(desk.folder, "-o", tmp_path)
    no_log = tmp_path / "no.log.jsonl"
    no_log.write_text("{}\n")
    assert "Line 1 of the log" in _refused(no_log)
    new = write_study(tmp_path / "new")
    assert "there is no study.db yet" in _refused(new)
    assert not (new / "report.html").exists()


def _refused(*arguments):
    result = CliRunner().invoke(main, ["report", *map(str, arguments)])
    assert result.exit_code == 2, result.output
    return result.output


# ---- a study that nobody has come to ------------------------------------------------------------


def test_an_empty_study_has_a_report_too(tmp_path):
    desk = Desk(tmp_path / "new")
    try:
        made = make_report(desk.database, desk.study, desk.clock)
    finally:
        desk.close()
    text = Seen(made.page).text
    assert "in 3 consecutive audits" in text
    assert "at least 10 % of the differences" in text
    assert "No answers yet." in text
    assert "There are no participants yet." in text
    assert "Collection had not ended at the time of writing" in text
    assert carried(made.page)["snapshots"] == []


# ---- pictures -----------------------------------------------------------------------------------


@pytest.fixture
def pictured(tmp_path):
    folder = tmp_path / "pictures"
    (folder / "stimuli").mkdir(parents=True)
    for number in range(5):
        image = png.patch(40 * number, 80, 120, side=8)
        (folder / "stimuli" / f"item{number}.png").write_bytes(image)
    (folder / "study.toml").write_text('title = "Pictures"\n')
    desk = Desk(folder)
    yield desk
    desk.close()


def test_small_images_are_in_the_page(pictured):
    shown = stimuli.shown(pictured.study)
    assert (shown.pictures, shown.left_out) == (5, "")
    assert all(item["address"].startswith("data:image/png;base64,") for item in shown.items)


def test_large_ones_are_named_and_small_versions_can_be_given(pictured, tmp_path, monkeypatch):
    monkeypatch.setattr(stimuli, "MAX_BYTES", 300)
    shown = stimuli.shown(pictured.study)
    assert shown.pictures == 0
    assert all(item["address"] is None for item in shown.items)
    assert "shown by name" in shown.left_out
    small = tmp_path / "small"
    small.mkdir()
    for number in range(5):
        (small / f"item{number}.gif").write_bytes(b"GIF89a" + bytes(10))
    given = stimuli.shown(pictured.study, small)
    assert (given.pictures, given.left_out) == (5, "")
    assert all(item["address"].startswith("data:image/gif;base64,") for item in given.items)


def test_a_log_has_no_images_and_says_so(pictured, tmp_path):
    result = CliRunner().invoke(
        main, ["export", str(pictured.folder), "--format", "log", "--out", str(tmp_path)]
    )
    assert result.exit_code == 0
    log = tmp_path / "pictures.log.jsonl"
    output = written(log)
    assert output["pictures"] == 0
    assert "when the report was made: 5 of 5" in output["left_out"]
    assert "when the report was made: 5 of 5" in (tmp_path / "report.html").read_text()
    assert written(log, "--pictures", pictured.folder / "stimuli")["pictures"] == 5
