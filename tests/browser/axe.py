"""axe-core inside the page, past its content security policy."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page

SCRIPT = (Path(__file__).parent.parent / "vendor" / "axe-4.14.0.min.js").read_text()
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def violations(page: Page) -> list[str]:
    """Every rule that the page breaks, with where it does."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(SCRIPT)
    # Of what is in order it need not describe every element, and no rule here reads style sheets.
    found = page.evaluate(
        "(tags) => axe.run(document, {runOnly: tags, resultTypes: ['violations'], "
        "preload: {assets: ['media']}})",
        TAGS,
    )
    return [
        f"{finding['id']}: {finding['help']}: {node['html'][:200]} "
        f"{node.get('failureSummary', '')[:200]}"
        for finding in found["violations"]
        for node in finding["nodes"]
    ]
