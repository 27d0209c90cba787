"""Errors of the domain."""

from config.http.errors import ApplicationError, WrongInput

CHECK_OUT_TOO_EARLY = "Must be after check_in."
TOO_MANY_CUSTOMERS = "The suite's capacity is {capacity} customers."
DUPLICATE_CUSTOMER = "A customer is listed twice."
SUITE_UNKNOWN = "Suite not found."
CUSTOMERS_UNKNOWN = "Customers not found: {ids}."
SLOT_TAKEN = "The suite is already booked on these nights."


def slot_taken() -> ApplicationError:
    return ApplicationError("slot_taken", SLOT_TAKEN, 409)


def suite_unknown() -> WrongInput:
    return WrongInput({"suite": [SUITE_UNKNOWN]}, 404)


def customers_unknown(ids: list[str]) -> WrongInput:
    return WrongInput({"customers": [CUSTOMERS_UNKNOWN.format(ids=", ".join(sorted(ids)))]}, 404)


def too_many_customers(capacity: int) -> WrongInput:
    return WrongInput({"customers": [TOO_MANY_CUSTOMERS.format(capacity=capacity)]})
