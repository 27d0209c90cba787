"""The exact responses of the variants, and a check that a sample's bytes fit them."""

import gzip
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import httpx

from load_lab.bench.sample import Sample
from load_lab.errors import LabError
from load_lab.paths import current_state

# The headers of a response are smaller.
_HEADERS_BYTES = 1500
_SECONDS = 60


@dataclass(frozen=True)
class Answer:
    """One response: `raw` as received, `body` after decompression."""

    status: int
    raw: bytes
    body: bytes
    etag: str


def fetch(url: str, headers: dict[str, str], status: int = 200) -> Answer:
    """Request a page like wrk: without compression, unless `headers` request it.

    Raises:
        LabError: there is no response, or it has another status or encoding.
    """
    request_headers = {"Accept-Encoding": "identity", **headers}
    try:
        with httpx.stream("GET", url, headers=request_headers, timeout=_SECONDS) as response:
            raw = b"".join(response.iter_raw())
    except httpx.HTTPError as error:
        raise LabError(f"{url} does not answer: {error}. See `lab status`.") from None
    if response.status_code != status:
        raise LabError(f"{url} answers {response.status_code} instead of {status}: {raw[:200]!r}")
    compressed = response.headers.get("Content-Encoding") == "gzip"
    if compressed != (request_headers["Accept-Encoding"] == "gzip"):
        raise LabError(
            f"{url} was asked for {request_headers['Accept-Encoding']}; gzip came: {compressed}."
        )
    body = gzip.decompress(raw) if compressed else raw
    return Answer(response.status_code, raw, body, response.headers.get("ETag", ""))


def check_equal(answers: dict[str, Answer]) -> None:
    """Check that all bodies are identical.

    Raises:
        LabError: they differ.
    """
    if len({answer.body for answer in answers.values()}) > 1:
        sizes = ", ".join(f"{name} {len(answer.body)} bytes" for name, answer in answers.items())
        raise LabError(f"These should answer the same bytes and do not: {sizes}.")


def check_size(sample: Sample, body: int, connections: int) -> Sample:
    """Return `sample`, marked as wrong if its bytes can't be responses with a body of that size.

    wrk does not distinguish statuses below 400; a response other than a 304 has a body. The bytes
    include responses that were cut off at the end, one per connection.
    """
    minimum = sample.requests * body
    maximum = (sample.requests + connections) * (body + _HEADERS_BYTES)
    size = round(sample.bytes * sample.requests)
    if sample.wrong or minimum <= size <= maximum:
        return sample
    return replace(sample, wrong=f"{size} bytes in {sample.requests} answers of {body} each")


# The folder in nginx/templates/nginx.conf.template.
_FOLDER = "bench"


@contextmanager
def static_file(page: tuple[str, bytes] | None) -> Iterator[None]:
    """Write the (name, bytes) below the stack's state directory; remove the file afterwards."""
    if page is None:
        yield
        return
    folder = current_state().run / _FOLDER
    folder.mkdir(exist_ok=True)
    name, body = page
    try:
        (folder / name).write_bytes(body)
        yield
    finally:
        shutil.rmtree(folder)
