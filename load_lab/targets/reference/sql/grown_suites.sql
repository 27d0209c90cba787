INSERT INTO hotels_suite (id, hotel_id, number, capacity, price, version)
SELECT gen_random_uuid(), hotel.id, n, 4, 100, 1
FROM hotels_hotel hotel, generate_series(1, $suites) AS n
WHERE hotel.city = 'Grown'
