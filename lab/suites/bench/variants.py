"""One variant: activated, verified, warmed and measured."""

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
    """The running stack for the variants, whose settings override `base`."""

    engine: Engine
    base: Settings

    def __post_init__(self) -> None:
        self.base = changed(self.base, base_assignments())
        self.engine.apply(self.base)
        # Settings that are already verified: once is enough, and takes five seconds.
        self._known_good: list[Settings] = []
        target = target_of(self.engine, self.base)
        self.hotels = target.hotels()
        page = min(self.hotels)
        # The hotel whose page is read.
        self.hotel = hotel_of(page)
        # Hotels that get no bookings, so that the size of their pages does not change.
        self.spared = {self.hotel}
        self.paths = {
            "list": LIST,
            "detail": page,
            "healthz": "/healthz",
            "booking": "/api/booking/",
        }

    @contextmanager
    def prepared(self, row: Row) -> Iterator[None]:
        """Verify each variant, and create the file that one may need; remove it afterwards.

        Raises:
            LabError: a layer is not active as expected, or bodies differ that should be identical.
        """
        with kept_file(self._page_to_keep(row)):
            answers = {way.name: self.proved(way) for way in row.ways}
            check_equal({name: answers[name] for name in row.equal})
            yield

    def sample(
        self, way: Way, seconds: float, looking_on: AbstractContextManager[None] | None = None
    ) -> Sample:
        """Measure a variant after a warm-up; `looking_on` is active while the generator runs."""
        self.engine.apply(self.settings(way))
        load = self._book if way.page == "booking" else self._read
        load(way, _WARM_SECONDS, nullcontext())
        self.wait_until_idle()
        return load(way, seconds, looking_on or nullcontext())

    def wait_until_idle(self) -> None:
        """Wait until the serving processes have finished a load. Other services are never idle."""
        pids = self.engine.pids()
        wait_until_idle({name: pids[name] for name in _ANSWERING if name in pids})

    def settings(self, way: Way) -> Settings:
        """Return the variant's settings on this stack."""
        return changed_live(self.base, way.settings)

    def url(self, way: Way) -> str:
        """Return the URL of the variant's requests."""
        settings = self.settings(way)
        if way.entry == "file":
            return f"{settings.nginx_status_url}/static/{way.page}"
        root = settings.target_url if way.entry == "nginx" else settings.server_url
        return f"{root}{self.paths[way.page]}"

    @property
    def cpus(self) -> Cpus:
        return choose_cpus(self.base)

    def _page_to_keep(self, row: Row) -> tuple[str, bytes] | None:
        """Return name and content of the row's file: the page as the server returns it."""
        for way in row.ways:
            if way.entry == "file":
                answer = fetch(self.url(replace(way, entry="server")), {})
                return way.page, answer.body
        return None

    def proved(self, way: Way) -> Answer:
        """Return the variant's response, after verifying that it comes from the expected layers."""
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
        load = wrk.Load(self.url(way), way.connections, seconds, self._headers(way))
        # On shared CPUs this would slow down the generator as well.
        held = way.held_back and not self.cpus.shared
        with held_back(self.cpus.target) if held else nullcontext(), looking_on:
            sample = wrk.measure(load, self.cpus)
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
                load = wrk.Load(
                    self.url(way), way.connections, seconds, script="booking.lua", env=env
                )
                with looking_on:
                    sample = wrk.measure(load, self.cpus)
        return dataset.check_made(sample, dataset.bookings(self.engine) - before, way.connections)


def hotel_of(page: str) -> str:
    """Return the hotel's id from the path of its page."""
    return page.removeprefix(LIST).strip("/")
