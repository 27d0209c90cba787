"""What an HTML page contains: the addresses to which it leads."""

from contextlib import suppress
from html.parser import HTMLParser

# A longer page has no more that is worth it.
_MOST_LINKS = 1000


def links(page: bytes) -> list[str]:
    """Return the addresses of links, and of forms that send a GET, as the page has them."""
    parser = _Links()
    # What it can't read ends it: links before that stay.
    with suppress(AssertionError):
        parser.feed(page.decode(errors="replace"))
    return parser.found[:_MOST_LINKS]


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        sends_get = (values.get("method") or "get").lower() == "get"
        link = values.get("href") if tag == "a" else values.get("action") if tag == "form" else None
        if link and (tag == "a" or sends_get):
            self.found.append(link)
