"""What HTML answers look like, in the little that a load can compare: length, and a login form."""

import re
from collections.abc import Iterable

from load_lab.targets.mix import Page

# As in k6/lib/pages.js.
LOGIN = re.compile(r"""<input\b[^>]*\b(?:type|name)\s*=\s*["']?password""", re.IGNORECASE)


def page_of(body: bytes) -> Page | None:
    """Return what a page looks like; None without a body, as of HEAD."""
    text = body.decode(errors="replace")
    length, has_login = len(text), bool(LOGIN.search(text))
    return Page(least=length, most=length, has_login=has_login) if text else None


def together(pages: Iterable[Page | None]) -> Page | None:
    """Return what several answers have in common; None if one is no page."""
    known = list(pages)
    found = [each for each in known if each]
    if not found or len(found) < len(known):
        return None
    return Page(
        least=min(each.least for each in found),
        most=max(each.most for each in found),
        has_login=any(each.has_login for each in found),
    )
