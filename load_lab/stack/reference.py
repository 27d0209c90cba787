"""What the stack knows of the reference app: where its data are, and what it answers."""

# Postgres's database, the role that owns it, and the secret with the role's password.
DATABASE = "hotel"
ROLE = "hotel"
PASSWORD = "hotel_password"  # noqa: S105, the secret's name
# Has a row once the data are loaded.
HAS_DATA = "SELECT 1 FROM hotels_hotel LIMIT 1"
# A page's version must not repeat with other bookings: an ETag of an earlier cell would match the
# new page.
NEW_VERSIONS = (
    "UPDATE hotels_hotel SET version = (extract(epoch FROM now()) * 1000000)::bigint",
    "ANALYZE hotels_hotel",
)

# The list of all objects, which is quick in every variant.
LIST = "/api/hotel/"
