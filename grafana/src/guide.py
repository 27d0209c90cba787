"""The guide: docs/dashboards*.md as a dashboard, so that panels can link to it offline.

Each section of the pages is a panel of the guide; a link opens only that panel.
"""

import re

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.builders.text import Panel
from grafana_foundation_sdk.models.text import TextMode

from load_lab.paths import ROOT

DOCS = (ROOT / "docs/dashboards.md", ROOT / "docs/dashboards-services.md")
UID = "lab-guide"
TITLE = "How to read the dashboards"
_PICTURE = re.compile(r"^!\[[^\]]*\]\([^)]*\)\n+", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]*\)")


def sections() -> dict[str, str]:
    """Return the sections of both pages by title."""
    pages = (re.split(r"^## ", page.read_text(), flags=re.MULTILINE) for page in DOCS)
    pairs = (part.split("\n", 1) for _, *parts in pages for part in parts)
    return {title.strip(): body.strip() for title, body in pairs}


def address(section: str) -> str:
    """Return the path of a section in Grafana.

    Raises:
        ValueError: the pages have no such section.
    """
    return f"/d/{UID}?viewPanel={list(sections()).index(section) + 1}"


def build() -> Dashboard:
    """Build the guide, one panel per section."""
    dashboard = Dashboard(TITLE).uid(UID).readonly().tags(["load-lab-guide"])
    dashboard.description("What each panel shows; the same text as docs/dashboards*.md.")
    for number, (title, body) in enumerate(sections().items(), start=1):
        panel = Panel().id(number).title(title).description("From docs/dashboards*.md.")
        text = panel.mode(TextMode.MARKDOWN).content(_plain_markdown(body))
        dashboard.with_panel(text.span(24).height(_rows(body)))
    return dashboard


def _plain_markdown(body: str) -> str:
    """Remove pictures, and replace links to other pages by their text: Grafana can show neither."""
    return _LINK.sub(r"\1", _PICTURE.sub("", body))


def _rows(body: str) -> int:
    """Return the approximate height of the text, in rows of the dashboard's grid."""
    return 4 + len(_plain_markdown(body).splitlines()) * 7 // 10
