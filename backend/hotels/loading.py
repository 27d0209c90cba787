"""Load the hotels' data into their tables."""

from collections.abc import Iterable

from ops.copying import Row, copy, progress, truncate

from hotels.data import Data, Sizes
from hotels.models import Booking, Customer, Hotel, Suite

_LINKS = Booking.customers.through._meta.db_table
_COLUMNS = {
    Customer._meta.db_table: ("id", "name", "email"),
    Hotel._meta.db_table: ("id", "name", "address", "city", "stars", "description", "version"),
    Suite._meta.db_table: ("id", "hotel_id", "number", "capacity", "price", "version"),
    Booking._meta.db_table: (
        *("id", "suite_id", "check_in", "check_out"),
        *("created_at", "customer_ids"),
    ),
    _LINKS: ("booking_id", "customer_id"),
}
# Bookings are copied in batches, since a connection can COPY into only one table at a time.
_BATCH = 5_000


class HotelData:
    """Hotels, their suites, customers and bookings."""

    command = "load_db"

    def __init__(self, seed: int, sizes: Sizes) -> None:
        self._data = Data(seed, sizes)
        self._sizes = sizes

    def exists(self) -> bool:
        return Hotel.objects.exists()

    def describe(self) -> str:
        """Describe the existing data, for an error message."""
        return f"{Hotel.objects.count()} hotels"

    def clear(self) -> None:
        truncate(*_COLUMNS, "idempotency_storedanswer")

    def load(self) -> str:
        """Load the data. Return its description."""
        sizes, data = self._sizes, self._data
        total = sizes.customers + sizes.hotels * (1 + sizes.suites_per_hotel) + sizes.bookings
        with progress(total) as bar:
            for model, rows in (
                (Customer, data.customers()),
                (Hotel, data.hotels()),
                (Suite, data.suites()),
            ):
                bar.update(_copy(model._meta.db_table, rows))
            for bookings, links in _batches(data.bookings()):
                bar.update(_copy(Booking._meta.db_table, bookings))
                _copy(_LINKS, links)
        return (
            f"{sizes.hotels} hotels, {sizes.hotels * sizes.suites_per_hotel} suites, "
            f"{sizes.customers} customers and {sizes.bookings} bookings"
        )


def _copy(table: str, rows: Iterable[Row]) -> int:
    return copy(table, _COLUMNS[table], rows)


def _batches(
    pairs: Iterable[tuple[Row, list[Row]]],
) -> Iterable[tuple[list[Row], list[Row]]]:
    bookings: list[Row] = []
    links: list[Row] = []
    for booking, booking_links in pairs:
        bookings.append(booking)
        links.extend(booking_links)
        if len(bookings) == _BATCH:
            yield bookings, links
            bookings, links = [], []
    yield bookings, links
