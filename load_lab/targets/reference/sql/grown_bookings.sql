WITH guests AS (
    SELECT array_agg(id) AS ids FROM (SELECT id FROM hotels_customer LIMIT 1000) AS picked
), booked AS (
    INSERT INTO hotels_booking (id, suite_id, check_in, check_out, created_at, customer_ids)
    SELECT gen_random_uuid(), suite.id, night + 2 * n, night + 2 * n + 1, now(),
           ARRAY[ids[1 + (random() * (cardinality(ids) - 1))::int]]
    FROM hotels_suite suite JOIN hotels_hotel hotel ON hotel.id = suite.hotel_id, guests,
         generate_series(1, $each) AS n, (SELECT date '2026-01-01' AS night) AS first
    WHERE hotel.city = 'Grown' AND hotel.address = '$batch'
    RETURNING id, customer_ids
)
INSERT INTO hotels_booking_customers (booking_id, customer_id)
SELECT id, unnest(customer_ids) FROM booked
