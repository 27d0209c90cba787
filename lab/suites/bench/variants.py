"""One way: made active, proved, warmed, and measured."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace

from lab.host.cpus import Cpus, choose_cpus
from lab.host.processes import wait_until_idle
from lab.settings import Settings, changed, changed_live
from lab.stack.engine import Engine
from lab.stack.verify import LIST, target_of, verify
from lab.suites.bench import dataset, pgbench, wrk
from lab.suites.bench.answers import Answer, check_equal, check_size, fetch, kept_file
from lab.suites.bench.busy import held_back
from lab.suites.bench.rows import Row, Way, base_assignments
from lab.suites.bench.sample import Sample

_WARM_SECONDS = 1.0
_ANSWERING = ("nginx", "backend", "redis", "postgres")


@dataclass
class Bench:
    """The running stack as the ways use it. `base` is what every way's settings are laid over."""

    engine: Engine
    base: Settings

    def __post_init__(self) -> None:
        self.base = changed(self.base, base_assignments())
        self.engine.apply(self.base)
        # Settings that were proved: once is enough, and takes five seconds.
        self._known_good: list[Settings] = []
        target = target_of(self.engine, self.base)
        self.hotels = target.hotels()
        page = min(self.hotels)
        # The hotel whose page is read.
        self.hotel = hotel_of(page)
        # Hotels that no load books in: their pages stay as large as they are.
        self.spared = {self.hotel}
        self.paths = {
            "list": LIST,
            "detail": page,
            "healthz": "/healthz",
            "booking": "/api/booking/",
        }

    @contextmanager
    def prepared(self, row: Row) -> Iterator[None]:
        """Each way proved, and the file there that one may need; it is gone afterwards.

        Raises:
            LabError: a layer is not on as it should be, or bodies differ that should be the same.
        """
        with kept_file(self._page_to_keep(row)):
            answers = {way.name: self.proved(way) for way in row.ways}
            check_equal({name: answers[name] for name in row.equal})
            yield

    def sample(
        self, way: Way, seconds: float, looking_on: AbstractContextManager[None] | None = None
    ) -> Sample:
        """Measure it once, after a warm-up; `looking_on` while the generator runs."""
        self.engine.apply(self.settings(way))
        load = self._book if way.page == "booking" else self._read
        load(way, _WARM_SECONDS, nullcontext())
        self.wait_until_idle()
        return load(way, seconds, looking_on or nullcontext())

    def wait_until_idle(self) -> None:
        """What answers has done what an ended load left it. Others of the stack are never idle."""
        pids = self.engine.pids()
        wait_until_idle({name: pids[name] for name in _ANSWERING if name in pids})

    def settings(self, way: Way) -> Settings:
        """The way's settings on this stack."""
        return changed_live(self.base, way.settings)

    def url(self, way: Way) -> str:
        """Where its requests go."""
        settings = self.settings(way)
        if way.entry == "file":
            return f"{settings.nginx_status_url}/static/{way.page}"
        root = settings.target_url if way.entry == "nginx" else settings.server_url
        return f"{root}{self.paths[way.page]}"

    @property
    def cpus(self) -> Cpus:
        return choose_cpus(self.base)

    def _page_to_keep(self, row: Row) -> tuple[str, bytes] | None:
        """What the row's file holds: the page as the server answers it."""
        for way in row.ways:
            if way.entry == "file":
                answer = fetch(self.url(replace(way, entry="server")), {})
                return way.page, answer.body
        return None

    def proved(self, way: Way) -> Answer:
        """The way's answer, once it is proved that it comes from where it should."""
        settings = self.settings(way)
        if settings not in self._known_good:
            with self.engine.emptied(settings):
                pass
            verify(target_of(self.engine, settings))
            self._known_good.append(settings)
        self.engine.apply(settings)
        return Answer(way.status, b"", b"", "") if way.page == "booking" else self._fetched(way)

    def _fetched(self, way: Way) -> Answer:
        return fetch(self.url(way), self._headers(way), way.status)

    def _headers(self, way: Way) -> dict[str, str]:
        if not way.known:
            return way.headers
        return {**way.headers, "If-None-Match": fetch(self.url(way), way.headers).etag}

    def _read(self, way: Way, seconds: float, looking_on: AbstractContextManager[None]) -> Sample:
        asked = wrk.Asked(self.url(way), way.connections, seconds, self._headers(way))
        # On shared CPUs it would hold the generator back as well.
        held = way.held_back and not self.cpus.shared
        with held_back(self.cpus.target) if held else nullcontext(), looking_on:
            sample = wrk.measure(asked, self.cpus)
        sample = replace(sample, busy=replace(sample.busy, held_back=held))
        return check_size(sample, len(self._fetched(way).raw), way.connections)

    def _book(self, way: Way, seconds: float, looking_on: AbstractContextManager[None]) -> Sample:
        slots = dataset.free_slots(self.engine, spared=sorted(self.spared))
        before = dataset.bookings(self.engine)
        if way.generator == "pgbench":
            with looking_on:
                sample = pgbench.measure(self.engine, self.base, slots, way.connections, seconds)
        else:
            with dataset.slots_file(slots) as file:
                env = {"BENCH_SLOTS": str(file)}
                asked = wrk.Asked(
                    self.url(way), way.connections, seconds, script="booking.lua", env=env
                )
                with looking_on:
                    sample = wrk.measure(asked, self.cpus)
        return dataset.check_made(sample, dataset.bookings(self.engine) - before, way.connections)


def hotel_of(page: str) -> str:
    """The hotel's id in the path of its page."""
    return page.removeprefix(LIST).strip("/")
