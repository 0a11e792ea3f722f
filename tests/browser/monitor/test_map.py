"""The map and the dimensions: nothing missing, clipped or covered; reachable; saved as files."""

from __future__ import annotations

import io
import itertools
import shutil
import struct
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

from lore_active.simulation.observers import ObserverNoise, gaussian_space
from server.processes.rehearsal import Purpose
from server.report.report import report as make_report
from server.store import collection
from server.study.workspace import open_study
from tests.browser.monitor_pages import assert_valid_page, monitor, new_page, wait_for
from tests.support.fitted_studies import pictured_study, png, words
from tests.support.simulated_participants import SimulatedParticipant, take_turns

SVG = "{http://www.w3.org/2000/svg}"
LAPTOP = {"viewport": {"width": 1366, "height": 768}, "reduced_motion": "reduce"}
SHAPES = [(60, 60), (200, 20), (20, 200), (120, 40), (40, 120), (16, 16)]
LONG = [
    "a very long description of something that goes on and on, number",
    "Donaudampfschifffahrtsgesellschaftskapitän",
    "שחור ולבן",
    "برتقالي فاتح جدا",
    "w",
]
# What is seen of labels in a drawing, in pixels of the window.
BOXES = """(place) => [...place.querySelectorAll('.name > :not(title)')]
  .filter((one) => getComputedStyle(one.parentElement).display !== 'none')
  .map((one) => one.getBoundingClientRect()).map((r) => [r.left, r.top, r.right, r.bottom])"""
# Labels of both axes of a chart, in pixels of the window.
TICK_LABELS = """(place) => [...place.querySelectorAll('svg > g text')]
  .filter((one) => /^[−-]?[\\d.,]+$/.test(one.textContent))
  .map((one) => one.getBoundingClientRect()).map((r) => [r.left, r.top, r.right, r.bottom])"""
# Where marks are: x and y in the drawing, by item.
MARKS = """(place) => Object.fromEntries([...place.querySelectorAll('.item')].map((one, i) => {
  const [x, y] = one.getAttribute('transform').match(/-?[\\d.]+(e-?\\d+)?/g).map(Number);
  return [i, [x, y]];
}))"""


def studies(home: Path) -> dict[str, Path]:
    line = np.linspace(-3.0, 3.0, 8)[:, None] ** 3
    images = {f"i{number:02d}.png": png(*SHAPES[number % 6], number) for number in range(30)}
    names = [f"{LONG[number % 5]} {number}" for number in range(100)]
    return {
        "line": pictured_study(home / "line", words([f"taste {n}" for n in range(8)]), line, 250),
        "images": pictured_study(home / "images", images, gaussian_space(30, 2, 5), 2000),
        "hundred": pictured_study(home / "hundred", words(names), gaussian_space(100, 3, 6), 5000),
    }


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return studies(tmp_path_factory.mktemp("pictures"))


@pytest.fixture
def server(serve, folders):
    return serve(*folders.values())


def opened(chromium, server, study, **options):
    page = monitor(chromium, server.address, study, **{**LAPTOP, **options})
    page.wait_for_load_state("networkidle")
    wait_for(page, "document.querySelectorAll('.axis .item').length > 0")
    return page


def data_of(page):
    return page.evaluate("fetch('data', {headers: {'X-Monitor': '1'}}).then((r) => r.json())")


def overlapping(boxes, slack=0.5):
    """Pairs of boxes that cover each other by more than the rounding of a pixel."""
    return [
        (one, other)
        for one, other in itertools.combinations(boxes, 2)
        if one[0] < other[2] - slack
        and other[0] < one[2] - slack
        and one[1] < other[3] - slack
        and other[1] < one[3] - slack
    ]


def outside(boxes, frame):
    left, top, right, bottom = frame
    return [
        box
        for box in boxes
        if box[0] < left - 1 or box[1] < top - 1 or box[2] > right + 1 or box[3] > bottom + 1
    ]


def frame_of(page, selector):
    box = page.locator(selector).bounding_box()
    return box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"]


@pytest.mark.parametrize("width", [1366, 390])
@pytest.mark.parametrize("study", ["line", "images", "hundred"])
def test_every_item_is_on_every_dimension_at_its_coordinate(chromium, server, study, width):
    page = opened(chromium, server, study, viewport={"width": width, "height": 800})
    positions = np.array(data_of(page)["map"]["positions"])
    strips = page.locator(".axis .strip")
    expect(strips).to_have_count(positions.shape[1])
    for k, strip in enumerate(strips.all()):
        strip.scroll_into_view_if_needed()
        boxes = strip.evaluate(BOXES)
        assert len(boxes) == len(positions)
        assert overlapping(boxes, slack=2.0) == []
        frame = strip.evaluate(
            "(one) => { const r = one.firstChild.getBoundingClientRect();"
            " return [r.left, r.top, r.right, r.bottom]; }"
        )
        assert outside(boxes, frame) == []
        marks = strip.evaluate(MARKS)
        xs = np.array([marks[str(i)][0] for i in range(len(positions))])
        slope, offset = np.polyfit(positions[:, k], xs, 1)
        np.testing.assert_allclose(xs, slope * positions[:, k] + offset, atol=0.5)
        names = strip.locator("svg").get_attribute("aria-label")
        assert names.count(",") >= len(positions) - 1
    page.context.close()


def test_images_do_not_cover_each_other_and_keep_a_mark(chromium, server):
    page = opened(chromium, server, "images")
    place = page.locator("#map-chart")
    boxes = place.evaluate(BOXES)
    assert len(boxes) == 30
    assert overlapping(boxes) == []
    assert outside(boxes, frame_of(page, "svg.map")) == []
    positions = np.array(data_of(page)["map"]["positions"])
    marks = place.evaluate(MARKS)
    xy = np.array([marks[str(i)] for i in range(30)])
    unit = np.ptp(xy[:, 0]) / np.ptp(positions[:, 0])
    np.testing.assert_allclose(np.ptp(xy[:, 1]), unit * np.ptp(positions[:, 1]), rtol=1e-3)
    # An image that had to move shows where it belongs.
    middles = np.array([[(box[0] + box[2]) / 2, (box[1] + box[3]) / 2] for box in boxes])
    frame = frame_of(page, "svg.map")
    moved = np.hypot(*(middles - xy - frame[:2]).T) > 5
    pins = place.evaluate(
        "(place) => [...place.querySelectorAll('.pin circle')]"
        ".map((one) => getComputedStyle(one).display !== 'none')"
    )
    assert moved.any() and mean_shift(page) <= 0.5
    np.testing.assert_array_equal(pins, moved)
    page.context.close()


def test_labels_do_not_overlap_and_those_without_room_are_counted(chromium, server):
    page = opened(chromium, server, "hundred")
    place = page.locator("#map-chart")
    boxes = place.evaluate(BOXES)
    assert overlapping(boxes, slack=2.0) == []
    assert outside(boxes, frame_of(page, "svg.map")) == []
    missing = 100 - len(boxes)
    said = page.locator("#map-message").text_content()
    assert (f"{missing} name" in said) == (missing > 0)
    expect(page.locator("svg.map .pin circle")).to_have_count(100)
    page.get_by_role("button", name="Enlarge").click()
    expect(page.get_by_role("button", name="Enlarge")).to_have_attribute("aria-pressed", "true")
    wait_for(
        page, f"document.querySelectorAll('svg.map .name:not(.crowded)').length > {len(boxes)}"
    )
    assert overlapping(place.evaluate(BOXES), slack=2.0) == []
    assert_valid_page(page)
    page.context.close()


def test_one_dimension_is_a_line(chromium, server):
    page = opened(chromium, server, "line")
    assert data_of(page)["map"]["rank"] == 1
    expect(page.get_by_label("Y axis")).to_be_hidden()
    marks = page.locator("#map-chart").evaluate(MARKS)
    assert len({y for _, y in marks.values()}) == 1
    assert len({round(x) for x, _ in marks.values()}) == 8
    page.locator("#item").select_option("2")
    expect(page.locator("svg.map .ellipses rect")).to_have_count(1)
    assert_valid_page(page)
    page.context.close()


def test_uncertainty_is_shown_of_what_is_pointed_at_chosen_or_all(chromium, server):
    page = opened(chromium, server, "images")
    ellipses = page.locator("svg.map .ellipses ellipse")
    expect(ellipses).to_have_count(0)
    page.locator("svg.map .item").nth(4).hover()
    expect(ellipses).to_have_count(1)
    assert_seen_on_images(page)
    page.mouse.move(5, 5)
    expect(ellipses).to_have_count(0)
    page.locator("#item").select_option("7")
    expect(page.locator("svg.map .ellipses .chosen")).to_have_count(1)
    expect(page.locator("#inspector")).to_contain_text("Anchor in 0 questions, option in 0.")
    page.get_by_label("all ellipses").check()
    expect(ellipses).to_have_count(30)
    cut = page.evaluate(
        """() => { const frame = document.querySelector('svg.map').getBoundingClientRect();
          return [...document.querySelectorAll('svg.map ellipse')].filter((one) => {
            const r = one.getBoundingClientRect();
            return r.left < frame.left || r.right > frame.right || r.top < frame.top
              || r.bottom > frame.bottom; }).length }"""
    )
    assert cut == 0
    # The ellipses need room, so the map is drawn smaller; so are its images, instead of far away.
    assert mean_shift(page) <= 0.5
    page.context.close()


# Points of the ellipse that is shown, each with whether an image is below it.
OUTLINE = """() => { const one = document.querySelector('svg.map ellipse');
  const [length, to] = [one.getTotalLength(), one.getScreenCTM()];
  const image = ({ x, y }) =>
    document.elementsFromPoint(x, y).some((at) => at.nodeName === 'image');
  return Array.from({ length: 60 }, (_, n) => one.getPointAtLength((n * length) / 60))
    .map((point) => point.matrixTransform(to)).map((point) => [point.x, point.y, image(point)]);
}"""


# Waits for a drawing that was requested before.
DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def assert_seen_on_images(page):
    """The outline of an ellipse that crosses images changes most of the pixels there."""
    for item in page.locator("svg.map .item").all():
        item.hover()
        page.evaluate(DRAWN)
        points = [(round(x), round(y)) for x, y, image in page.evaluate(OUTLINE) if image]
        if len(points) >= 10:
            break
    assert len(points) >= 10
    with_ellipse = pixels(page)
    page.evaluate("() => { document.querySelector('svg.map ellipse').style.display = 'none' }")
    without = pixels(page)
    page.evaluate("() => { document.querySelector('svg.map ellipse').style.display = '' }")
    changes = [np.abs(with_ellipse[y, x] - without[y, x]).max() for x, y in points]
    assert np.mean(np.array(changes) > 25) > 0.5


def pixels(page):
    return np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("RGB")).astype(int)


def mean_shift(page):
    """Mean distance of images from their marks, as a share of their size."""
    place, frame = page.locator("#map-chart"), frame_of(page, "svg.map")
    boxes, marks = np.array(place.evaluate(BOXES)), place.evaluate(MARKS)
    middles = (boxes[:, :2] + boxes[:, 2:]) / 2 - frame[:2]
    sizes = np.sqrt(np.prod(boxes[:, 2:] - boxes[:, :2], axis=1))
    xy = np.array([marks[str(i)] for i in range(len(boxes))])
    return float(np.mean(np.hypot(*(middles - xy).T) / sizes))


def test_the_map_is_walked_with_keys(chromium, server):
    page = opened(chromium, server, "images")
    page.locator("#ellipses").focus()
    seen = set()
    for _ in range(12):
        page.keyboard.press("Tab")
        focused = page.evaluate("document.activeElement.dataset.item")
        if focused is not None:
            break
    assert focused is not None
    for key in ("ArrowRight", "ArrowUp", "ArrowLeft", "ArrowDown", "ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
        seen.add(page.evaluate("document.activeElement.dataset.item"))
    assert len(seen) > 2
    assert None not in seen
    now = page.evaluate("document.activeElement.dataset.item")
    page.keyboard.press("Enter")
    expect(page.locator("#item")).to_have_value(now)
    expect(page.locator(f"[data-item='{now}']").first).to_have_attribute("aria-pressed", "true")
    assert page.evaluate("document.activeElement.dataset.item") == now
    name = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert "dimension 1" in name
    page.keyboard.press("Escape")
    expect(page.locator("#item")).to_have_value("")
    page.context.close()


def saved(page, kind):
    with page.expect_download() as download:
        page.get_by_role("button", name=f"Save {kind}").click()
    path = Path(download.value.path())
    return download.value.suggested_filename, path.read_bytes()


def assert_self_contained(text):
    tree = ET.fromstring(text)
    for element in tree.iter():
        assert "class" not in element.attrib
        assert "var(" not in " ".join(element.attrib.values())
        for name, value in element.attrib.items():
            if name.endswith("href"):
                assert value.startswith("data:image/")
        if element.tag == f"{SVG}text":
            assert float(element.get("textLength")) > 0
    return tree


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_map_is_saved_as_files_that_need_nothing_else(chromium, server, scheme):
    page = opened(chromium, server, "images", color_scheme=scheme)
    name, text = saved(page, "SVG")
    assert name == "images-map-1-2.svg"
    tree = assert_self_contained(text)
    assert len(list(tree.iter(f"{SVG}image"))) == 30
    assert "Dimension 1 (model units) →" in {one.text for one in tree.iter(f"{SVG}text")}
    name, picture = saved(page, "PNG")
    assert name == "images-map-1-2.png"
    width, height = struct.unpack(">II", picture[16:24])
    frame = page.locator("svg.map").bounding_box()
    assert (width, height) == (3 * round(frame["width"]), 3 * round(frame["height"]))
    # As it is on paper, whatever the screen is like: white around, and something drawn.
    colours = page.evaluate(
        """async (bytes) => {
          const image = await createImageBitmap(new Blob([new Uint8Array(bytes)]));
          const canvas = new OffscreenCanvas(image.width, image.height);
          const context = canvas.getContext('2d'); context.drawImage(image, 0, 0);
          const all = context.getImageData(0, 0, image.width, image.height).data;
          const seen = new Set();
          for (let i = 0; i < all.length; i += 4) seen.add(`${all[i]},${all[i + 1]},${all[i + 2]}`);
          return [`${all[0]},${all[1]},${all[2]}`, seen.size]; }""",
        list(picture),
    )
    assert colours[0] == "255,255,255"
    assert colours[1] > 30
    assert page.evaluate("window.violations") == []
    page.context.close()


def test_a_report_saves_the_map_too(chromium, folders, tmp_path):
    study, database = open_study(folders["line"], lambda: 1_800_000_000_000)
    file = tmp_path / "report.html"
    file.write_text(make_report(database, study, lambda: 1_800_000_000_000).page)
    database.close()
    page = new_page(chromium, offline=True, **LAPTOP)
    page.goto(f"file://{file}")
    expect(page.locator("body")).to_have_attribute("data-drawn", "")
    name, text = saved(page, "SVG")
    assert name == "line-map-1.svg"
    tree = assert_self_contained(text)
    assert {f"taste {n}" for n in range(8)} <= {one.text for one in tree.iter(f"{SVG}text")}
    assert saved(page, "PNG")[1].startswith(b"\x89PNG")
    assert_valid_page(page)
    page.context.close()


@pytest.mark.parametrize("study", ["line", "images", "hundred"])
@pytest.mark.parametrize("size", [(1366, 768), (1920, 1080)])
def test_headline_evidence_and_map_share_the_first_screen(chromium, server, study, size):
    page = opened(chromium, server, study, viewport={"width": size[0], "height": size[1]})
    assert_on_the_first_screen(page, *size)
    page.context.close()


def rehearsed(server, study):
    """Give a study the longest banner: bots only, who met the stopping rule, in a kept copy."""
    served = server.studies[study]
    items = len(served.service.study.items)
    bot = SimulatedParticipant(
        served.service, gaussian_space(items, 2, 1), 1, ObserverNoise(), simulated=True
    )
    for _ in take_turns([bot]):
        pass

    def work(c):
        collection.add_event(c, collection.SIMULATED_STOP, "stopping rule", 1, answers=5000)
        Purpose(kept="/home/ada/studies/rehearsals/2026-02-03-first").note(c, 1)

    served.database.write(work)


@pytest.mark.parametrize("study", ["line", "images", "hundred"])
@pytest.mark.parametrize("size", [(1366, 768), (1920, 1080)])
def test_they_share_it_below_a_banner_too(chromium, serve, folders, tmp_path, study, size):
    shutil.copytree(folders[study], tmp_path / study)
    server = serve(tmp_path / study)
    rehearsed(server, study)
    page = opened(chromium, server, study, viewport={"width": size[0], "height": size[1]})
    expect(page.locator("#simulated")).to_contain_text("no more bots are let in")
    expect(page.locator("#simulated")).to_contain_text("kept in /home/ada")
    assert frame_of(page, "#simulated")[1] >= 0
    assert_on_the_first_screen(page, *size)
    page.context.close()


def assert_on_the_first_screen(page, width, height):
    least = {"#headline": 20, "#evidence-chart svg": 80, "#rank-chart svg": 80, "svg.map": 220}
    for selector, tall in least.items():
        left, top, right, bottom = frame_of(page, selector)
        assert top >= 0 and left >= 0 and right <= width, selector
        assert bottom <= height, selector
        assert bottom - top >= tall, selector
    charts = [frame_of(page, one) for one in ("#evidence-chart svg", "#rank-chart svg", "svg.map")]
    assert overlapping(charts) == []
    for chart in ("#evidence-chart", "#rank-chart"):
        labels = page.locator(chart).evaluate(TICK_LABELS)
        assert len(labels) >= 2, chart
        assert overlapping(labels) == [], chart
    # Their cards, too: what is said below the pictures is not cut off.
    for card in ("#dimensions", "#map"):
        assert frame_of(page, card)[3] <= height, card
    wait_for(page, "document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("width", [320, 390, 768])
def test_narrow_screens_need_no_sideways_scrolling(chromium, server, width):
    page = opened(chromium, server, "hundred", viewport={"width": width, "height": 740})
    wait_for(page, "document.documentElement.scrollWidth <= innerWidth")
    left, _, right, _ = frame_of(page, "svg.map")
    assert left >= 0 and right <= width
    assert_valid_page(page)
    page.context.close()
