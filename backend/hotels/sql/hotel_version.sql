-- A number that grows with every change of what hotel detail shows. The suites' versions are summed,
-- so that bookings of different suites need not wait for one counter.
SELECT hotel.version + coalesce(
    (SELECT sum(suite.version) FROM hotels_suite suite WHERE suite.hotel_id = hotel.id), 0
)
FROM hotels_hotel hotel WHERE hotel.id = %(hotel)s
