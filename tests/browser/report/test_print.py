"""A report on paper: pages are filled, pictures are whole, and nothing goes beyond the margins."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import numpy as np
import pytest
from playwright.sync_api import expect

from lore_active.simulation.observers import gaussian_space
from server.clock import now
from server.report.report import report as make_report
from server.store import collection
from server.study.items.positions import read_positions
from server.study.samples.template import write_study as write_sample
from server.study.workspace import open_study
from tests.browser.monitor.test_map import BOXES, overlapping
from tests.browser.monitor_pages import new_page
from tests.support.fitted_studies import pictured_study, words
from tests.support.open_study import Desk
from tests.support.report_study import carried, collected
from tests.support.simulated_participants import SimulatedParticipant, take_turns

# Millimetres of the paper that are left free on every side.
MARGIN, WIDTH, HEIGHT = 14, 210, 297
DPI = 50


# As other fonts, of other devices, would take more or less space.
FONTS = {
    "as here": "",
    "wide": ".report { letter-spacing: 0.03em }",
    "high": ".report { line-height: 1.5 !important }",
    "large": "html { font-size: 12.6px !important }",
    "small": "html { font-size: 11.5px !important }",
}


def printed(chromium, file, folder, style=""):
    """Every page as an array of grey values."""
    if shutil.which("pdftoppm") is None:
        if os.environ.get("CI"):
            pytest.fail("pdftoppm is not installed (Debian: poppler-utils), and CI needs it.")
        pytest.skip("PAPER NOT LOOKED AT: no pdftoppm here (Debian: apt install poppler-utils)")
    page = new_page(chromium, viewport={"width": 1366, "height": 768}, bypass_csp=bool(style))
    page.goto(f"file://{file}")
    expect(page.locator("body")).to_have_attribute("data-drawn", "")
    if style:
        page.add_style_tag(content=style)
    folder.mkdir(exist_ok=True)
    page.pdf(path=folder / "report.pdf", prefer_css_page_size=True, print_background=True)
    assert page.locator("html.for-paper, .chart[style*=height]").count() == 0, "as before printing"
    page.context.close()
    command = ["pdftoppm", "-gray", "-r", str(DPI), "report.pdf", "page"]
    subprocess.run(command, cwd=folder, check=True)
    pages = []
    for one in sorted(folder.glob("page-*.pgm")):
        held = one.read_bytes()
        head = re.match(rb"P5\s+(\d+)\s+(\d+)\s+255\s", held)
        width, height = int(head[1]), int(head[2])
        pages.append(np.frombuffer(held, np.uint8, offset=head.end()).reshape(height, width))
    return pages


def of_people(folder):
    """A report of a small study that was stopped by hand."""
    desk = collected(folder / "words", participants=8)
    page = make_report(desk.database, desk.study, desk.clock).page
    desk.close()
    return page


def without_a_map(folder):
    """A report of participants who only pressed the same key: there are no dimensions to draw."""
    desk = Desk(folder / "words", "[session]\ntrials = 40\npractice = 0\n")
    worker, space = desk.worker(), gaussian_space(12, 2, 5)
    crowd = [
        SimulatedParticipant(desk.service, space, seed, always="left", wait=desk.wait)
        for seed in (1, 2, 3)
    ]
    for _ in take_turns(crowd, worker.turn):
        pass
    while worker.turn():
        pass
    page = make_report(desk.database, desk.study, desk.clock).page
    desk.close()
    assert carried(page)["shown"]["map"]["rank"] == 0
    return page


def rehearsed(folder):
    """A report of images that simulated participants compared until the rule was met."""
    write_sample(folder / "colours", "colours", 1)
    desk = Desk(folder / "colours")
    worker = desk.worker()
    space = read_positions(desk.folder / "positions.csv", desk.study.items)
    for first in range(1, 60, 5):
        crowd = [
            SimulatedParticipant(desk.service, space, seed, simulated=True, wait=desk.wait)
            for seed in range(first, first + 5)
        ]
        for _ in take_turns(crowd, worker.turn, every=12):
            pass
        if desk.database.read(collection.simulated_stopped):
            break
    page = make_report(desk.database, desk.study, desk.clock).page
    desk.close()
    return page


@pytest.mark.parametrize("made", [of_people, without_a_map, rehearsed])
def test_pages_are_filled_and_keep_their_margins(chromium, tmp_path, made):
    file = tmp_path / "report.html"
    file.write_text(made(tmp_path))
    for font, style in FONTS.items():
        pages = printed(chromium, file, tmp_path / font, style)
        assert 4 <= len(pages) <= 12
        for number, grey in enumerate(pages, 1):
            check_page(grey, f"page {number} (letters: {font})", last=number == len(pages))


def check_page(grey, name, last):
    # The number of the page, in the margin below, fills nothing.
    content = grey[: round(grey.shape[0] * (1 - MARGIN / HEIGHT))]
    assert (grey[content.shape[0] :] < 200).any(), f"{name} has no number"
    rows, columns = np.nonzero(content < 200)
    millimetres = WIDTH / grey.shape[1]
    assert columns.min() * millimetres >= MARGIN - 1, name
    assert columns.max() * millimetres <= WIDTH - MARGIN + 1, name
    if last:
        # How far it is filled depends on the study, but a line or two never stand alone.
        filled = (rows.max() - rows.min()) * HEIGHT / grey.shape[0]
        assert filled > 20, f"{name} has only a line or two"
    else:
        assert rows.max() / grey.shape[0] > 0.7, f"{name} ends too early"
    # No gap within a page is as high as a picture.
    gaps = np.diff(np.unique(rows)) * HEIGHT / grey.shape[0]
    assert gaps.max() < 35, name


def opened(chromium, file):
    """A report in a window, with its figures drawn."""
    page = new_page(chromium, viewport={"width": 1366, "height": 768})
    page.goto(f"file://{file}")
    expect(page.locator("body")).to_have_attribute("data-drawn", "")
    return page


def attribute_of(selector, name):
    """A script that lists a number of all these elements."""
    elements = f"[...document.querySelectorAll('{selector}')]"
    return f"{elements}.map((element) => Number(element.getAttribute('{name}')))"


def test_figures_are_as_wide_as_the_page(chromium, tmp_path):
    desk = collected(tmp_path / "words")
    file = tmp_path / "report.html"
    file.write_text(make_report(desk.database, desk.study, desk.clock).page)
    desk.close()
    page = opened(chromium, file)
    widths = attribute_of(".plot, svg.map, svg.line", "width")
    before = page.evaluate(widths)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    paper = page.evaluate(widths)
    assert max(paper) <= 182 / 25.4 * 96 + 1 < max(before)
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(widths) == before
    page.context.close()


# Lines of text in each cell with a number.
LINES = """[...document.querySelectorAll('.everybody td.number')].map((cell) => {
  const text = document.createRange();
  text.selectNodeContents(cell);
  return new Set([...text.getClientRects()].map((box) => Math.round(box.top))).size;
})"""
TIMES = """[...document.querySelectorAll('#collected-chart text')]
  .filter((label) => /^\\d+:/.test(label.textContent))"""


def test_short_studies_have_readable_times_and_numbers_in_one_line(chromium, tmp_path):
    desk = Desk(tmp_path / "words", "[session]\ntrials = 20\npractice = 0\n")
    space = gaussian_space(12, 2, 5)
    crowd = [
        SimulatedParticipant(desk.service, space, seed, rt_ms=500.0, wait=desk.wait)
        for seed in (1, 2, 3)
    ]
    for _ in take_turns(crowd):
        pass
    file = tmp_path / "report.html"
    file.write_text(make_report(desk.database, desk.study, desk.clock).page)
    desk.close()
    page = opened(chromium, file)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert set(page.evaluate(LINES)) == {1}
    times = page.evaluate(f"{TIMES}.map((label) => label.textContent)")
    assert len(times) >= 2 and len(set(times)) == len(times), "each time is another one"
    boxes = page.evaluate(
        f"{TIMES}.map((label) => label.getBoundingClientRect())"
        ".map((box) => [box.left, box.top, box.right, box.bottom])"
    )
    assert overlapping(boxes) == []
    page.context.close()


def test_a_page_holds_three_dimensions_of_a_hundred_items(chromium, tmp_path):
    names = [f"word number {number}" for number in range(100)]
    folder = pictured_study(tmp_path / "hundred", words(names), gaussian_space(100, 3, 6), 5000)
    study, database = open_study(folder, now)
    file = tmp_path / "report.html"
    file.write_text(make_report(database, study, now).page)
    database.close()
    page = opened(chromium, file)
    heights = attribute_of(".strip svg", "height")
    before = page.evaluate(heights)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    strips = page.evaluate(heights)
    paper = (HEIGHT - 2 * 15) / 25.4 * 96
    assert len(strips) == 3
    assert max(strips) < 0.3 * paper and sum(strips) < 0.8 * paper
    # Every name is there, in letters that can be read in print (6 points), and none covers another.
    assert page.locator(".strip .name:not(.crowded) text").count() == 3 * 100
    sizes = (
        "[...document.querySelectorAll('.strip .name text')]"
        ".map((one) => Number(one.getAttribute('font-size')))"
    )
    assert min(page.evaluate(sizes)) >= 8
    for strip in page.locator(".strip").all():
        assert overlapping(strip.evaluate(BOXES), slack=2.5) == []
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(heights) == before
    page.context.close()
