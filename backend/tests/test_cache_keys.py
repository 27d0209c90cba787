"""Only the path of a request selects its page: query strings and headers change no response and
add no keys to Redis.
"""

import time

import pytest
from hotels.caching import local

TRICKS = {
    "arguments": ("?x={}", {}),
    "their order": ("?b={}&a=1&format=json", {}),
    "format": ("?format=json&{}", {}),
    "host": ("", {"Host": "evil{}.example"}),
    "credentials": ("", {"Authorization": "Bearer {}"}),
    "cookie": ("", {"Cookie": "session={}"}),
    "accept": ("", {"Accept": "application/json; indent={}, */*"}),
    "language": ("", {"Accept-Language": "x-{}"}),
    "encodings": ("", {"Accept-Encoding": "br, x{};q=0.1"}),
    "forwarded": ("", {"X-Forwarded-Host": "evil{}.example", "X-Forwarded-Proto": "https"}),
    "method": ("", {"X-HTTP-Method-Override": "DELETE", "X-Trick": "{}"}),
    "range": ("", {"Range": "bytes=0-{}"}),
    "token": ("", {"X-Lab-Token": "guess{}"}),
    "since": ("", {"If-Modified-Since": "Mon, 0{} Jan 2035 00:00:00 GMT"}),
    "match": ("", {"If-Match": '"{}"'}),
}


@pytest.fixture(params=TRICKS)
def trick(request, settings):
    """Return a function that requests a page with the n-th variant of the trick."""
    # As in the stack, where Nginx accepts any host name.
    settings.ALLOWED_HOSTS = ["*"]
    arguments, headers = TRICKS[request.param]

    def request_page(api, path, n=1):
        values = {name: value.format(n) for name, value in headers.items()}
        return api.get(path + arguments.format(n), headers=values)

    return request_page


def _without_lifetime(answer):
    """Return the response without the lifetime headers, which only a cached page has."""
    names = {"Content-Type", "Content-Encoding", "ETag", "Vary"}
    headers = {name: value for name, value in answer.headers.items() if name in names}
    return answer.status_code, answer.content, headers


def _keys(caches):
    return set(caches.redis.scan_iter(f"*{caches.prefix}*"))


def _get_cached(caches, get):
    """Return a response during which Redis was available; on a busy machine it may time out."""
    deadline = time.monotonic() + 20
    while True:
        count = caches.counts("redis")
        answer = get()
        if "unavailable" not in count() or time.monotonic() > deadline:
            return answer


def _empty(caches):
    for key in _keys(caches):
        caches.redis.delete(key)
    local.clear()


def test_first_request_with_trick_caches_the_plain_page(api, cache_variant, caches, pages, trick):
    for path in pages:
        first = _without_lifetime(_get_cached(caches, lambda path=path: trick(api, path)))
        keys = _keys(caches)
        plain = _without_lifetime(api.get(path))
        assert plain == first
        assert plain[0] == 200
        assert _keys(caches) == keys
        _empty(caches)
        assert _without_lifetime(api.get(path)) == plain


def test_tricks_add_no_keys_to_redis(api, cache_variant, caches, pages, trick):
    for path in pages:
        _get_cached(caches, lambda path=path: api.get(path))
    keys = _keys(caches)
    for path in pages:
        for n in range(2, 9):
            assert trick(api, path, n).status_code == 200
    assert _keys(caches) == keys
