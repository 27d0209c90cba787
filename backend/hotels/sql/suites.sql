-- One row for each suite of a hotel, in the order of the models' `ordering`. Its bookings are JSON
-- text, which needs no escaping: a Python object for each of thousands of ids would be most of the
-- work. Dates have the format of DateStyle=ISO (settings.py). `customer_ids` is Postgres's own copy of
-- the links, in their order (migration 0003). ARRAY with ORDER BY reads the index on suite and check_in;
-- with string_agg the planner chooses the index of the exclusion constraint.
SELECT suite.id, suite.number, suite.capacity, suite.price, concat('[', array_to_string(ARRAY(
    SELECT concat(
        '{"id":"', booking.id,
        '","check_in":"', booking.check_in,
        '","check_out":"', booking.check_out,
        '","customers":', array_to_json(booking.customer_ids),
        '}'
    )
    FROM hotels_booking booking WHERE booking.suite_id = suite.id ORDER BY booking.check_in
), ','), ']')
FROM hotels_suite suite WHERE suite.hotel_id = %(hotel)s ORDER BY suite.number
