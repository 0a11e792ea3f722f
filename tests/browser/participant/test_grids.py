"""Questions with several options, and the odd one out: whole sessions in every way of answering."""

from __future__ import annotations

import json
from itertools import count

import pytest
from playwright.sync_api import Locator, expect

from server.collection.screens import CONTINUED
from server.study.items.display import items_by_name
from tests.browser.participant_pages import Walk, rows
from tests.support.live_server import write_study
from tests.support.media import audio_clips, images, write_media_study

KINDS = {
    "choose": '[trial]\nskip = true\nkind = "choose"\noptions = 6\npick = 2\n',
    "rank": '[trial]\nskip = true\nkind = "rank"\noptions = 12\npick = 3\n',
    "one of four": '[trial]\nskip = true\nkind = "choose"\noptions = 4\npick = 1\n',
    "odd one out": '[trial]\nskip = true\nkind = "odd-one-out"\n',
}
SEVERAL = ("choose", "rank")
SESSION = "[session]\ntrials = 3\npractice = 1\nbreak_every = 2\n"
ONLY_TRIALS = "[session]\ntrials = 9\npractice = 0\nbreak_every = 0\n"
PHONE = {"viewport": {"width": 360, "height": 640}, "has_touch": True, "is_mobile": True}
# Two presses of one place within half a second are a double click.
APART_MS = 600
KEYS = "1234567890-="
ANSWERS = (
    "SELECT coalesce(a.chosen, a.outcome) FROM answers a JOIN queries q ON q.id = a.query "
    "ORDER BY a.seq"
)


class Grid:
    """The trial on the page."""

    def __init__(self, walk: Walk, way: str = "mouse") -> None:
        self._walk, self._page, self._way = walk, walk.page, way

    @property
    def options(self) -> Locator:
        return self._page.locator(".trial [data-option]")

    @property
    def pick(self) -> int:
        return int(self._page.locator(".trial").get_attribute("data-pick") or 1)

    @property
    def pressed(self) -> list[int]:
        """Positions of the options that are chosen now."""
        return [
            at
            for at, option in enumerate(self.options.all())
            if option.get_attribute("aria-pressed") == "true"
        ]

    def shown(self, items: dict[str, int]) -> list[int]:
        """Numbers of the options' items."""
        names = self.options.evaluate_all("(all) => all.map((one) => one.dataset.item)")
        return [items[name] for name in names]

    def press(self, position: int) -> None:
        """Press an option in this way of answering."""
        if self._way == "keys":
            self._page.keyboard.press(KEYS[position])
        elif self._way == "touch":
            self.options.nth(position).tap()
        else:
            self.options.nth(position).click()

    def confirm(self) -> None:
        """Press Continue."""
        button = self._page.get_by_role("button", name="Continue")
        if self._way == "keys":
            self._page.keyboard.press("Enter")
        elif self._way == "touch":
            button.tap()
        else:
            button.click()

    def answer(self, positions: list[int], changed: bool = False) -> None:
        """Choose these options; if `changed`, another one first, which is undone."""
        if self.pick == 1:
            self._walk.answer(lambda: self.press(positions[0]))
            return
        other = next(at for at in count() if at not in positions)
        for at in (other, other, *positions) if changed else positions:
            before = self.pressed
            if at in before:
                self._page.wait_for_timeout(APART_MS)
            self.press(at)
            # A press is handled at once; this fails if it was not.
            expect(self._page.locator("[aria-pressed=true]")).to_have_count(
                len(before) + (-1 if at in before else 1)
            )
        assert sorted(positions) == self.pressed
        self._walk.answer(self.confirm)


def stored(server) -> list[object]:
    """What was answered: the chosen items in their order, or how it ended."""
    return [
        json.loads(text) if text.startswith("[") else text
        for (text,) in rows(server, "study", ANSWERS)
    ]


def timings(server) -> list[dict]:
    found = rows(server, "study", "SELECT timings FROM answers ORDER BY seq")
    return [json.loads(text) for (text,) in found]


def wanted(number: int, options: int, pick: int) -> list[int]:
    """Different options each time, not in the order of their places."""
    return [(number * 5 + 3 * at) % options for at in range(pick)][::-1]


@pytest.mark.parametrize("way", ["mouse", "touch", "keys"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_session(window, serve, tmp_path, kind, way):
    toml = KINDS[kind] + SESSION
    if way == "keys":
        server = serve(write_study(tmp_path / "study", toml, 14))
    else:
        server = serve(write_media_study(tmp_path / "study", images(14), toml))
    items = items_by_name(server.studies["study"].study)
    walk = Walk(window(**(PHONE if way == "touch" else {})), f"{server.address}/s/study/")
    grid, given, seen = Grid(walk, way), [], []
    while walk.kind != "finished":
        if walk.kind not in seen:
            assert walk.axe() == [], walk.kind
        seen.append(walk.kind)
        wide = "() => document.documentElement.scrollWidth <= innerWidth"
        assert walk.page.evaluate(wide), "it must never scroll sideways"
        if walk.kind not in ("practice", "trial"):
            walk.step()
            continue
        shown = grid.shown(items)
        positions = wanted(len(given), len(shown), grid.pick)
        grid.answer(positions, changed=len(given) == 1)
        given.append([shown[at] for at in positions])
        if walk.kind == "practice_feedback":
            marks = walk.page.locator("[data-chosen] .mark")
            expect(marks.first).to_contain_text("Your choice")
            expect(marks).to_have_count(len(positions))
            expect(walk.page.locator(".note")).to_contain_text("ost people choose")
    assert seen[:4] == ["consent", "instructions", "practice", "practice_feedback"]
    found = stored(server)
    if kind == "choose":
        assert [sorted(finding) for finding in found] == [sorted(answer) for answer in given]
    else:
        assert found == given
    assert walk.complaints == []
    pointer = {"keys": "key"}.get(way, way)
    for number, timing in enumerate(timings(server)):
        assert timing["pointer"] == pointer and timing["rt_ms"] >= 200
        if kind not in SEVERAL:
            assert "clicks" not in timing
            continue
        # The second answer was changed: a choice, its undoing, and what was then chosen.
        picks = 3 if kind == "rank" else 2
        assert len(timing["clicks"]) == picks + (2 if number == 1 else 0)
        times = [ms for _, ms in timing["clicks"]]
        assert times == sorted(times) and times[0] >= 200 and times[-1] <= timing["rt_ms"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_session_with_scripts_off(window, serve, tmp_path, kind):
    server = serve(write_study(tmp_path / "study", KINDS[kind] + SESSION, 14))
    items = items_by_name(server.studies["study"].study)
    page = window(java_script_enabled=False).new_page()
    page.goto(f"{server.address}/s/study/")
    stage = page.locator("#stage > [data-kind]")
    buttons = {"consent": "I agree", "instructions": "Begin", "feedback": "Send and finish"}
    buttons |= dict.fromkeys(CONTINUED, "Continue")
    given: list[list[int]] = []
    while (now := stage.get_attribute("data-kind")) != "finished":
        if now in buttons:
            page.get_by_role("button", name=buttons[now]).click()
            continue
        options = page.locator(".trial [data-option]")
        names = options.evaluate_all("(all) => all.map((one) => one.dataset.item)")
        pick = int(page.locator(".trial").get_attribute("data-pick") or 1)
        positions = wanted(len(given), len(names), pick)
        if kind == "rank":
            for place, at in enumerate(positions, start=1):
                page.get_by_label(f"Place {place}").select_option(str(at))
        else:
            for at in positions:
                options.nth(at).click()
        if pick > 1:
            page.get_by_role("button", name="Continue").click()
        given.append([items[names[at]] for at in positions])
        if now == "practice":
            expect(page.locator("[data-chosen]")).to_have_count(pick)
    found = stored(server)
    if kind == "choose":
        assert [sorted(finding) for finding in found] == [sorted(answer) for answer in given]
    else:
        assert found == given
    assert len(found) == 4


@pytest.mark.parametrize("kind", SEVERAL)
def test_with_scripts_off_too_few_choices_are_sent_back(window, serve, tmp_path, kind):
    server = serve(write_study(tmp_path / "study", KINDS[kind] + ONLY_TRIALS, 14))
    page = window(java_script_enabled=False).new_page()
    page.goto(f"{server.address}/s/study/")
    page.get_by_role("button", name="I agree").click()
    page.get_by_role("button", name="Begin").click()
    question = page.locator("[name=question]").get_attribute("value")
    if kind == "rank":
        for place in (1, 2, 3):
            page.get_by_label(f"Place {place}").select_option("4")
        note = "Please choose 3 different ones"
    else:
        page.locator("[data-option]").first.click()
        note = "Please choose 2 different ones"
    page.get_by_role("button", name="Continue").click()
    expect(page.locator(".note")).to_contain_text(note)
    assert page.locator("[name=question]").get_attribute("value") == question
    page.get_by_role("button", name="I can't tell").click()
    expect(page.get_by_text("2 of 9", exact=True)).to_be_visible()
    assert stored(server) == ["skip"]


def test_only_a_complete_answer_is_sent(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "study", KINDS["rank"] + ONLY_TRIALS, 14))
    walk = Walk(window(), f"{server.address}/s/study/")
    walk.until("trial")
    grid, state = Grid(walk), walk.page.locator("#count")
    proceed = walk.page.get_by_role("button", name="Continue")
    question = walk.question
    expect(state).to_have_text("0 of 3 chosen")
    for act in (lambda: proceed.click(force=True), lambda: walk.page.keyboard.press("Enter")):
        act()
        expect(state).to_have_class("reminded")
        state.evaluate("(part) => part.classList.remove('reminded')")
    for number, at in enumerate((7, 2), start=1):
        grid.press(at)
        expect(state).to_have_text(f"{number} of 3 chosen")
        expect(proceed).to_have_attribute("aria-disabled", "true")
        proceed.click(force=True)
    grid.press(11)
    expect(proceed).to_have_attribute("aria-disabled", "false")
    grid.press(0)
    expect(state).to_have_text("3 of 3 chosen · To choose another one, undo one first.")
    assert grid.pressed == [2, 7, 11] and walk.question == question
    # Undoing the first choice moves the others up.
    walk.page.wait_for_timeout(APART_MS)
    grid.press(7)
    expect(state).to_have_text("2 of 3 chosen")
    places = walk.page.locator(".place[aria-hidden]")
    assert places.all_text_contents() == ["1", "2"]
    grid.press(0)
    walk.answer(proceed.click)
    clicks = [at for at, _ in timings(server)[0]["clicks"]]
    assert clicks == [7, 2, 11, 7, 0]


def test_a_double_click_chooses_once(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "study", KINDS["choose"] + ONLY_TRIALS, 14))
    walk = Walk(window(), f"{server.address}/s/study/")
    walk.until("trial")
    grid = Grid(walk)
    grid.options.nth(3).dblclick()
    assert grid.pressed == [3]
    assert stored(server) == []


@pytest.mark.parametrize("direction", ["ltr", "rtl"])
def test_arrow_keys_move_the_focus_over_the_grid(window, serve, tmp_path, direction):
    toml = f'direction = "{direction}"\n' + KINDS["rank"] + ONLY_TRIALS
    server = serve(write_study(tmp_path / "study", toml, 14))
    walk = Walk(window(), f"{server.address}/s/study/")
    walk.until("trial")
    page, grid = walk.page, Grid(walk, "keys")

    def go(key: str) -> int:
        page.keyboard.press(key)
        return int(page.evaluate("() => document.activeElement.dataset.option"))

    onward, back = (
        ("ArrowRight", "ArrowLeft") if direction == "ltr" else ("ArrowLeft", "ArrowRight")
    )
    assert go("ArrowDown") == 0
    assert [go(onward), go(onward), go("ArrowDown"), go(back), go("ArrowUp")] == [1, 2, 8, 7, 1]
    # Enter and Space choose what has the focus; once enough are chosen, Enter confirms.
    page.keyboard.press("Enter")
    go(onward)
    page.keyboard.press(" ")
    go(onward)
    page.keyboard.press(" ")
    assert grid.pressed == [1, 2, 3]
    assert walk.axe() == []
    walk.answer(lambda: page.keyboard.press("Enter"))
    assert len(stored(server)[0]) == 3


def test_a_screen_reader_hears_what_is_chosen(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "study", KINDS["rank"] + ONLY_TRIALS, 14))
    walk = Walk(window(), f"{server.address}/s/study/")
    walk.until("trial")
    grid, page = Grid(walk), walk.page
    group = page.get_by_role("group", name=page.locator("h1").inner_text())
    expect(group.get_by_role("button")).to_have_count(12)
    expect(page.locator("#count")).to_have_role("status")
    word = page.locator("[data-option='4'] .text").inner_text()
    button = group.get_by_role("button", name=f"Option 5: {word}")
    grid.press(8)
    grid.press(4)
    expect(button).to_have_accessible_name(f"Option 5: {word} Place 2")
    assert f'button "Option 5: {word} Place 2" [pressed]' in group.aria_snapshot()
    expect(page.locator("#count")).to_have_text("2 of 3 chosen")
    expect(page.get_by_role("status").last).to_be_attached()
    said = page.locator("#announcement").text_content()
    assert f"Option 5: {word}" in said and "Compare with this" in said


def test_keys_are_places_on_the_keyboard(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "study", KINDS["rank"] + ONLY_TRIALS, 14))
    walk = Walk(window(), f"{server.address}/s/study/")
    walk.until("trial")
    grid = Grid(walk)
    # A French keyboard: digits need Shift, and the key of the 6 has a hyphen.
    walk.page.evaluate(
        "() => [['&', 'Digit1'], ['-', 'Digit6'], ['3', 'Numpad3']].forEach(([key, code]) => "
        "document.body.dispatchEvent(new KeyboardEvent('keydown', {key, code, bubbles: true})))"
    )
    assert grid.pressed == [0, 2, 5]


def test_an_answer_is_sent_again_after_a_lost_connection(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "study", KINDS["rank"] + ONLY_TRIALS, 14))
    items = items_by_name(server.studies["study"].study)
    walk = Walk(window(), f"{server.address}/s/study/")
    walk.until("trial")
    grid = Grid(walk)
    shown = grid.shown(items)
    walk.page.context.set_offline(True)
    for at in (9, 0, 4):
        grid.press(at)
    grid.confirm()
    expect(walk.page.locator("#connection")).to_be_visible()
    walk.page.context.set_offline(False)
    walk.page.reload()
    expect(walk.page.get_by_text("2 of 9", exact=True)).to_be_visible()
    assert stored(server) == [[shown[at] for at in (9, 0, 4)]]
    assert [at for at, _ in timings(server)[0]["clicks"]] == [9, 0, 4]


def test_a_time_out_with_some_chosen_is_a_time_out(window, serve, tmp_path):
    toml = KINDS["choose"] + "timeout_ms = 1500\n" + ONLY_TRIALS
    server = serve(write_study(tmp_path / "study", toml, 14))
    walk = Walk(window(), f"{server.address}/s/study/")
    walk.until("trial")
    Grid(walk).press(2)
    expect(walk.page.locator(".note")).to_contain_text("You ran out of time")
    assert stored(server)[0] == "timeout"
    assert [at for at, _ in timings(server)[0]["clicks"]] == [2]
    assert timings(server)[0]["pointer"] == "clock"


def test_everything_is_played_before_something_is_chosen(window, serve, tmp_path):
    toml = KINDS["choose"].replace("6", "3") + ONLY_TRIALS
    server = serve(write_media_study(tmp_path / "study", audio_clips(5), toml))
    walk = Walk(window(), f"{server.address}/s/study/")
    walk.press("I agree")
    walk.page.get_by_role("button", name="Begin").click()
    expect(walk.page.locator(".trial[data-state=viewing]")).to_be_visible()
    walk.page.keyboard.press("1")
    expect(walk.page.locator("#count")).to_have_text("0 of 2 chosen")
    for button in walk.page.locator(".play").all():
        button.click()
        expect(button).to_have_attribute("data-played", "")
    assert walk.axe() == []
    for name in ("Option 2", "Option 3"):
        walk.page.get_by_role("button", name=name, exact=True).click()
    expect(walk.page.locator("#count")).to_have_text("2 of 2 chosen")
    walk.page.keyboard.press("Enter")
    expect(walk.page.get_by_text("2 of 9", exact=True)).to_be_visible()
    assert timings(server)[0]["played"] == {"anchor": 1, "0": 1, "1": 1, "2": 1}


@pytest.mark.parametrize("media", ["images", "words"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_trial_fits_its_window_without_scrolling(window, serve, tmp_path, kind, media):
    toml = KINDS[kind] + ONLY_TRIALS
    if media == "words":
        server = serve(write_study(tmp_path / "study", toml, 14))
    else:
        server = serve(write_media_study(tmp_path / "study", images(14), toml))
    walk = Walk(window(), f"{server.address}/s/study/")
    walk.until("trial")
    for width, height in ((360, 640), (640, 360), (1366, 768), (768, 1024), (3840, 2160)):
        assert walk.fits(width, height), f"{width} × {height}"
        cells = [option.bounding_box() for option in Grid(walk).options.all()]
        for cell in cells:
            assert cell["width"] >= 44 and cell["height"] >= 44, f"{width} × {height}: {cell}"
            assert cell["x"] >= 0 and cell["x"] + cell["width"] <= width
            assert cell["y"] >= 0 and cell["y"] + cell["height"] <= height
            assert cell["width"] == pytest.approx(cells[0]["width"], abs=0.5)
            assert cell["height"] == pytest.approx(cells[0]["height"], abs=0.5)
        if media == "images" and kind != "odd one out":
            anchor, *others = (
                image.bounding_box() for image in walk.page.locator(".trial img").all()
            )
            for other in others:
                ratio = anchor["width"] / other["width"]
                assert 0.8 < ratio < 1.25, f"{width} × {height}: {anchor} {other}"


def test_zoom_and_large_text(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "study", KINDS["rank"] + ONLY_TRIALS, 14))
    walk = Walk(window(viewport={"width": 640, "height": 400}), f"{server.address}/s/study/")
    walk.until("trial")
    walk.page.evaluate("() => document.documentElement.style.setProperty('font-size', '200%')")
    assert walk.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    grid = Grid(walk)
    grid.answer([11, 0, 5])
    assert len(stored(server)) == 1


def test_page_weights(window, serve, tmp_path):
    server = serve(write_study(tmp_path / "study", KINDS["rank"] + ONLY_TRIALS, 14))
    walk = Walk(window(), f"{server.address}/s/study/")
    walk.until("trial")
    cold, finished = Walk(window(), "about:blank"), []
    cold.page.on("requestfinished", lambda request: finished.append(request))
    cold.page.goto(walk.page.url)
    assert cold.stage
    cold.page.wait_for_load_state("networkidle")
    sent = {one.url: one.sizes()["responseBodySize"] for one in finished}
    assert sum(sent.values()) <= 38_000, sent
    grid = Grid(cold)
    for at in (0, 1, 2):
        grid.press(at)
    with cold.page.expect_response("**/answer") as further:
        grid.confirm()
    assert len(further.value.body()) <= 5_000
