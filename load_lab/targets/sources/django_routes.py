"""Print the routes of a Django project as JSON: `python manage.py shell < django_routes.py`.

It runs in the environment of the project (Django 2.2 or later, Python 3.6 or later) and imports
nothing of the lab; routes.py starts it and reads its output.
"""

import json
import re
from typing import Any, Dict, Iterable, Iterator, Tuple  # noqa: UP035 - Python 3.6

from django.conf import settings
from django.urls import URLPattern, get_resolver
from django.urls.resolvers import LocalePrefixPattern
from django.utils.regex_helper import normalize

# The project may print its own lines before and after.
BEGIN, END = "<<<routes ", " routes>>>"

# A template, and the regular expression of each of its parameters.
Variant = Tuple[str, Dict[str, str]]  # noqa: UP006 - Python 3.6


def routes(patterns: "Iterable[Any]", above: "list[Any]", names: "list[str]") -> "Iterator[Any]":
    """Yield the routes of `patterns`; `above` are the variants of what includes them."""
    for each in patterns:
        variants = [joined(left, right) for left in above for right in read(each.pattern)]
        if not isinstance(each, URLPattern):
            namespaces = [*names, each.namespace] if each.namespace else names
            yield from routes(each.url_patterns, variants, namespaces)
            continue
        name = ":".join([*names, each.name]) if each.name else ""
        for template, expressions in variants:
            yield {
                "template": template,
                "patterns": expressions,
                "name": name,
                "views": views(each.callback),
            }


def joined(left: Variant, right: Variant) -> Variant:
    """Join two parts of a path, and number the parameters without a name through both."""
    count = sum(name.startswith("_") for name in left[1])
    template, expressions = right
    new_names = {f"_{i}": f"_{i + count}" for i in range(len(expressions))}
    template = re.sub(r"\{(_\d+)\}", lambda m: f"{{{new_names[m.group(1)]}}}", template)
    renamed = {new_names.get(name, name): text for name, text in expressions.items()}
    return left[0] + template, {**left[1], **renamed}


def read(pattern: Any) -> "list[Variant]":
    """Return the variants of a pattern: with and without each optional part; none if it cannot be
    read, because it has alternatives outside of any group.
    """
    if isinstance(pattern, LocalePrefixPattern):
        return languages(pattern)
    # Flags of the whole pattern do not change its template.
    regex = re.sub(r"\A\(\?[a-zA-Z]+\)", "", pattern.regex.pattern)
    # Django's normalize() drops what is optional. A log has both.
    optional_slash = re.compile(r"/\?(?=(\$|\\[Zz])?\Z)")
    texts = [optional_slash.sub(slash, regex) for slash in ("/", "")]
    return [variant for text in dict.fromkeys(texts) for variant in normalized(text)]


def normalized(regex: str) -> "list[Variant]":
    """Return the forms of a regular expression without its optional parts, and with those that have
    a parameter.
    """
    # normalize() returns nothing for alternatives outside of a parameter, so they become one.
    for text in (regex, regex.replace("(?:", "(")):
        try:
            forms = normalize(text)
        except ValueError:
            return []
        if forms != [("", [])] or "|" not in text:
            expressions = dict(groups(text))
            return [variant(form, names, expressions) for form, names in forms]
    return []


def variant(form: str, names: "list[str]", expressions: "dict[str, str]") -> Variant:
    template = re.sub(r"%\((\w+)\)s", r"{\1}", form)
    return template, {name: expressions.get(name, "[^/]+") for name in names}


def groups(regex: str) -> "Iterator[tuple[str, str]]":
    """Yield name and text of each outermost capturing group; those without a name are _0, _1, …, as
    in normalize().
    """
    opened = []  # type: list[tuple[str, int]]
    unnamed = 0
    for token in re.finditer(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?:\?P<(\w+)>|\?\S)?|\)", regex):
        text = token.group()
        if text == ")" and opened:
            name, start = opened.pop()
            if name and not any(outer for outer, _ in opened):
                yield name, regex[start : token.start()]
        elif text[0] == "(":
            name = token.group(1) or ""
            if text == "(":
                name = f"_{unnamed}"
                unnamed += not any(outer for outer, _ in opened)
            opened.append((name, token.end()))


def languages(pattern: Any) -> "list[Variant]":
    """Return the variants of i18n_patterns(): the prefix of a language, or none."""
    codes = [code for code, _ in settings.LANGUAGES]
    codes.sort(key=lambda code: code != settings.LANGUAGE_CODE)
    prefixed = ("{language}/", {"language": "|".join(map(re.escape, codes))})
    return [prefixed] if pattern.prefix_default_language else [("", {}), prefixed]


def views(view: Any) -> "dict[str, list[str]]":
    """Return the methods that a view implements, each with the names of what answers it. A function
    does not tell its methods: it has GET at least.

    HEAD and OPTIONS are left out: Django answers them itself.
    """
    outer, view = view, undecorated(view)
    view_class = class_of(view)
    name = getattr(view_class or view, "__name__", type(view).__name__)
    names = list(dict.fromkeys([name, getattr(outer, "__name__", name)]))
    allowed = getattr(view_class, "http_method_names", None)
    if not allowed:
        return {"GET": names}
    options = getattr(view, "view_initkwargs", None) or getattr(view, "initkwargs", None) or {}
    # A view set names the method of each action.
    actions = getattr(view, "actions", None) or {}
    implemented = actions or [m for m in allowed if hasattr(view_class, m)]
    return {
        method.upper(): names + ([actions[method]] if method in actions else [])
        for method in options.get("http_method_names", allowed)
        if method in implemented and method not in ("head", "options", "trace")
    }


def class_of(view: Any) -> Any:
    """Return the class of a view: as_view() sets `view_class`, that of DRF `cls`; None without."""
    return getattr(view, "view_class", None) or getattr(view, "cls", None)


def undecorated(view: Any) -> Any:
    """Return what decorators without functools.wraps() hide: the view of a class, else the
    innermost function that takes a request.
    """
    found, waiting = [view], [view]
    while waiting and len(found) < 50:
        each = waiting.pop(0)
        inner = [getattr(each, "__wrapped__", None) or getattr(each, "func", None)]
        if not inner[0]:
            inner = [contents(cell) for cell in getattr(each, "__closure__", None) or ()]
        new = [it for it in inner if callable(it) and not any(it is other for other in found)]
        found += new
        waiting += new
    takers = [each for each in found if takes_request(each)]
    return next((each for each in found if class_of(each)), (takers or [view])[-1])


def contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        # It is not assigned yet.
        return None


def takes_request(view: Any) -> bool:
    code = getattr(view, "__code__", None)
    return getattr(code, "co_varnames", ())[:1] == ("request",)


# Django 2.2 runs this text inside of a function, whose names other functions do not see.
globals().update(locals())
print("\n" + BEGIN + json.dumps(list(routes([get_resolver()], [("", {})], []))) + END)
