"""One variant: activated, verified, warmed and measured."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace

from load_lab.bench import pgbench, wrk
from load_lab.bench.answers import Answer, check_equal, check_size, fetch, static_file
from load_lab.bench.rows import Row, Variant, base_assignments
from load_lab.bench.sample import Sample
from load_lab.machine.busy_loop import busy_loops
from load_lab.machine.cpus import Cpus, choose_cpus
from load_lab.machine.processes import wait_until_idle
from load_lab.settings import Settings, update_live_settings, update_settings
from load_lab.stack.engine import Engine
from load_lab.stack.reference import LIST
from load_lab.targets.reference import bookings
from load_lab.targets.reference.verify import target_of, verify

_WARM_SECONDS = 1.0
_SERVING = ("nginx", "backend", "redis", "postgres")


@dataclass
class Bench:
    """The running stack for the variants, whose settings override `base`."""

    engine: Engine
    base: Settings

    def __post_init__(self) -> None:
        self.base = update_settings(self.base, base_assignments())
        self.engine.apply(self.base)
        # Settings that are already verified: once is enough, and takes five seconds.
        self._verified: list[Settings] = []
        target = target_of(self.engine, self.base)
        self.pages = target.pages()
        page = min(self.pages)
        # The page that is read.
        self.page_id = id_of(page)
        # Pages that get no bookings, so that their size does not change.
        self.excluded = {self.page_id}
        self.paths = {
            "list": LIST,
            "detail": page,
            "healthz": "/healthz",
            "booking": "/api/booking/",
        }

    @contextmanager
    def prepare_row(self, row: Row) -> Iterator[None]:
        """Verify each variant, and create the file that one may need; remove it afterwards.

        Raises:
            LabError: a layer is not active as expected, or bodies differ that should be identical.
        """
        with static_file(self._static_page(row)):
            answers = {variant.name: self.verify_variant(variant) for variant in row.variants}
            check_equal({name: answers[name] for name in row.equal})
            yield

    def sample(
        self, variant: Variant, seconds: float, observer: AbstractContextManager[None] | None = None
    ) -> Sample:
        """Measure a variant after a warm-up; `observer` is active while the generator runs."""
        self.engine.apply(self.settings(variant))
        load = self._book if variant.page == "booking" else self._read
        load(variant, _WARM_SECONDS, nullcontext())
        self.wait_until_idle()
        return load(variant, seconds, observer or nullcontext())

    def wait_until_idle(self) -> None:
        """Wait until the serving processes have finished a load. Other services are never idle."""
        pids = self.engine.pids()
        wait_until_idle({name: pids[name] for name in _SERVING if name in pids})

    def settings(self, variant: Variant) -> Settings:
        """Return the variant's settings on this stack."""
        return update_live_settings(self.base, variant.settings)

    def url(self, variant: Variant) -> str:
        """Return the URL of the variant's requests."""
        settings = self.settings(variant)
        if variant.entry == "file":
            return f"{settings.nginx_status_url}/static/{variant.page}"
        root = settings.target_url if variant.entry == "nginx" else settings.server_url
        return f"{root}{self.paths[variant.page]}"

    @property
    def cpus(self) -> Cpus:
        return choose_cpus(self.base)

    def _static_page(self, row: Row) -> tuple[str, bytes] | None:
        """Return name and content of the row's file: the page as the server returns it."""
        for variant in row.variants:
            if variant.entry == "file":
                response = fetch(self.url(replace(variant, entry="server")), {})
                return variant.page, response.body
        return None

    def verify_variant(self, variant: Variant) -> Answer:
        """Return the variant's response, after verifying that it comes from the expected layers."""
        settings = self.settings(variant)
        if settings not in self._verified:
            with self.engine.empty_caches(settings):
                pass
            verify(target_of(self.engine, settings))
            self._verified.append(settings)
        self.engine.apply(settings)
        return (
            Answer(variant.status, b"", b"", "")
            if variant.page == "booking"
            else self._fetch(variant)
        )

    def _fetch(self, variant: Variant) -> Answer:
        return fetch(self.url(variant), self._headers(variant), variant.status)

    def _headers(self, variant: Variant) -> dict[str, str]:
        if not variant.conditional:
            return variant.headers
        return {**variant.headers, "If-None-Match": fetch(self.url(variant), variant.headers).etag}

    def _read(
        self, variant: Variant, seconds: float, observer: AbstractContextManager[None]
    ) -> Sample:
        load = wrk.Load(self.url(variant), variant.connections, seconds, self._headers(variant))
        # On shared CPUs this would slow down the generator as well.
        throttled = variant.throttled and not self.cpus.shared
        with busy_loops(self.cpus.target) if throttled else nullcontext(), observer:
            sample = wrk.measure(load, self.cpus)
        sample = replace(sample, busy=replace(sample.busy, held_back=throttled))
        return check_size(sample, len(self._fetch(variant).raw), variant.connections)

    def _book(
        self, variant: Variant, seconds: float, observer: AbstractContextManager[None]
    ) -> Sample:
        slots = bookings.free_slots(self.engine, excluded=sorted(self.excluded))
        before = bookings.count_bookings(self.engine)
        if variant.generator == "pgbench":
            with observer:
                sample = pgbench.measure(
                    self.engine, self.base, slots, variant.connections, seconds
                )
        else:
            with bookings.slots_file(slots) as file:
                env = {"BENCH_SLOTS": str(file)}
                load = wrk.Load(
                    self.url(variant), variant.connections, seconds, script="booking.lua", env=env
                )
                with observer:
                    sample = wrk.measure(load, self.cpus)
        booked = bookings.count_bookings(self.engine) - before
        return check_bookings(sample, booked, variant.connections)


def id_of(page: str) -> str:
    """Return the id in the path of a detail page."""
    return page.removeprefix(LIST).strip("/")


def check_bookings(sample: Sample, booked: int, connections: int) -> Sample:
    """Return `sample`, marked as wrong unless every response made a booking.

    There may be more bookings: each connection's last, unread one, and the same for the warm-up.
    """
    if sample.wrong or sample.requests <= booked <= sample.requests + 2 * connections:
        return sample
    return replace(sample, wrong=f"{sample.requests} answers made {booked} bookings")
