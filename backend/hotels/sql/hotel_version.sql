-- A number that grows with every change of hotel detail. It includes the sum of the suites' versions,
-- so that bookings of different suites do not wait for one counter.
SELECT hotel.version + coalesce(
    (SELECT sum(suite.version) FROM hotels_suite suite WHERE suite.hotel_id = hotel.id), 0
)
FROM hotels_hotel hotel WHERE hotel.id = %(hotel)s
