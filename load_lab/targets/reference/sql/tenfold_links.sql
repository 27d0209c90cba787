INSERT INTO hotels_booking_customers (booking_id, customer_id)
SELECT md5(booking.id::text || copy)::uuid, link.customer_id
FROM hotels_booking booking
JOIN hotels_suite suite ON suite.id = booking.suite_id AND suite.hotel_id = '$hotel'
JOIN hotels_booking_customers link ON link.booking_id = booking.id,
     generate_series(1, $copies) AS copy
