INSERT INTO hotels_hotel (id, name, address, city, stars, description, version)
SELECT gen_random_uuid(), 'Grown ' || n, n % $batches, 'Grown', 3, 'One of many.', 1
FROM generate_series(1, $hotels) AS n
