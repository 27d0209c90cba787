"""Signals of the domain."""

from django.dispatch import Signal

# Sent with `booking` (services.CreatedBooking) and `hotel` (UUID), after the booking's commit.
booking_committed = Signal()
