"""Taking part without a browser: a small study, and a client that goes through it."""

from __future__ import annotations

import re

SETTINGS = """
[session]
trials = 4
practice = 0
break_every = 0
[completion]
code = "C1"
redirect = "https://panel.example/done?pid=[PROLIFIC_PID]&x=[x]"
"""


def taking_part(app, query=""):
    """A client at the first question, and the question's page."""
    client = app.test_client()
    page = client.get(f"/s/words/{query}", follow_redirects=True)
    action = re.search(r'action="([^"]+)/consent"', page.text)[1]
    client.post(f"{action}/consent", data={"agreed": "yes"})
    return client, action, client.post(f"{action}/begin", follow_redirects=True)


def finish(client, action, page):
    while 'name="question"' in page.text:
        question = re.search(r'name="question" value="([^"]+)"', page.text)[1]
        page = client.post(
            f"{action}/answer", data={"question": question, "side": "left"}, follow_redirects=True
        )
    return page
