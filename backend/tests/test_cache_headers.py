"""Cache headers of pages for each value of LAB_NGINX_CACHE."""

from uuid import uuid4

import pytest
from lab_settings.kinds import NginxCache, RedisCache

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("nginx", [NginxCache.OFF, NginxCache.BASIC])
def test_cache_headers_are_absent_unless_protected(api, caches, pages, nginx):
    caches.on(LAB_NGINX_CACHE=nginx)
    for path in pages:
        answer = api.get(path)
        assert "X-Accel-Expires" not in answer.headers
        assert "Cache-Control" not in answer.headers


def test_basic_leaves_cache_control_of_cache_page_unchanged(api, caches, pages):
    caches.on(LAB_NGINX_CACHE=NginxCache.BASIC, LAB_REDIS_CACHE=RedisCache.PAGE)
    for path in pages:
        for _ in range(2):
            assert api.get(path).headers["Cache-Control"] == "max-age=600"


def test_protected_lifetime_does_not_depend_on_other_layers(api, cache_variant, caches, pages):
    caches.on(LAB_NGINX_CACHE=NginxCache.PROTECTED, LAB_NGINX_CACHE_TTL="5m")
    for path in pages:
        tag = api.get(path).headers["ETag"]
        for headers in ({}, {"If-None-Match": tag}):
            answer = api.get(path, headers=headers)
            assert answer.headers["X-Accel-Expires"] == "300"
            assert answer.headers["Cache-Control"] == (
                "max-age=300, stale-while-revalidate=1, stale-if-error=60"
            )
            assert "Expires" not in answer.headers
            assert "Age" not in answer.headers
    assert "X-Accel-Expires" not in api.get(f"/api/hotel/{uuid4()}/").headers


def test_only_versioned_sends_vary(api, caches, pages):
    for redis in RedisCache:
        caches.on(LAB_REDIS_CACHE=redis)
        for path in pages:
            varies = api.get(path, headers={"Accept-Encoding": "gzip"}).headers.get("Vary")
            assert varies == ("Accept-Encoding" if redis is RedisCache.VERSIONED else None)
