INSERT INTO hotels_booking (id, suite_id, check_in, check_out, created_at, customer_ids)
SELECT md5(booking.id::text || copy)::uuid, booking.suite_id,
       booking.check_in + copy * $nights, booking.check_out + copy * $nights,
       booking.created_at, booking.customer_ids
FROM hotels_booking booking
JOIN hotels_suite suite ON suite.id = booking.suite_id AND suite.hotel_id = '$hotel',
     generate_series(1, $copies) AS copy
