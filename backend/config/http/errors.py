"""The API's error format, and the exception handlers that return it.

{"error": {"code": "…", "message": "…", "fields": {"name": ["…"]}}}

`fields` is only in responses to invalid input.
"""

import logging
from collections.abc import Iterable
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from psycopg_pool import PoolTimeout
from rest_framework import exceptions, status
from rest_framework.response import Response

logger = logging.getLogger(__name__)

RETRY_AFTER_SECONDS = 1

NO_DATABASE = "The database is unavailable. Try again later."
TOO_LARGE = "The body is larger than 64 KB."
WRONG_INPUT = "The request has invalid values. See `fields`."
NOT_FOUND = "Not found."
OVERLOADED = "The server is overloaded. Try again later."
BAD_REQUEST = "The request is not valid HTTP for this host."
SERVER_ERROR = "Internal server error. It was logged."
METHOD_NOT_ALLOWED = 'Method "{method}" not allowed.'


# Errors of Postgres, its driver and the pool while the database is unavailable.
DATABASE_ERRORS = (OperationalError, InterfaceError, PoolTimeout)


class ApplicationError(Exception):
    """A domain rule rejects the request."""

    def __init__(
        self, code: str, message: str, status_code: int, *, retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status_code = status_code
        self.retry_after = retry_after


class WrongInput(ApplicationError):
    """The request has invalid values; `fields` maps each field to its messages."""

    def __init__(self, fields: dict[str, list[str]], status_code: int = 400) -> None:
        code = "not_found" if status_code == status.HTTP_404_NOT_FOUND else "invalid"
        super().__init__(code, WRONG_INPUT, status_code)
        self.fields = fields


# Errors that a view outside DRF passes to `error_response`.
EXPECTED_ERRORS = (ApplicationError, RequestDataTooBig, *DATABASE_ERRORS)


def body(code: str, message: str, fields: Any = None) -> dict[str, Any]:
    """Return an error in the API's format."""
    error = {"code": code, "message": message}
    return {"error": error if fields is None else {**error, "fields": fields}}


def exception_handler(error: Exception, _context: dict[str, Any]) -> HttpResponse | None:
    """Return a response for every expected exception (DRF's EXCEPTION_HANDLER).

    None lets all others become a 500.
    """
    if isinstance(error, ApplicationError):
        return _application_error(error)
    if isinstance(error, DATABASE_ERRORS):
        return database_unavailable(error)
    if isinstance(error, RequestDataTooBig):
        return Response(body("too_large", TOO_LARGE), 413)
    if isinstance(error, Http404):
        return Response(body("not_found", NOT_FOUND), 404)
    if isinstance(error, PermissionDenied):
        return Response(body("denied", str(error)), 403)
    if isinstance(error, exceptions.APIException):
        return _api_exception(error)
    return None


def error_response(error: Exception) -> JsonResponse:
    """Return the response for a EXPECTED_ERRORS error, in a view outside DRF."""
    if isinstance(error, ApplicationError):
        content, headers = _content_and_headers(error)
        return JsonResponse(content, status=error.status_code, headers=headers)
    if isinstance(error, RequestDataTooBig):
        return JsonResponse(body("too_large", TOO_LARGE), status=413)
    return database_unavailable(error)


def method_not_allowed(request: HttpRequest, allowed: Iterable[str]) -> JsonResponse:
    """Return 405 with Allow, in a view outside DRF."""
    message = METHOD_NOT_ALLOWED.format(method=request.method)
    headers = {"Allow": ", ".join(allowed)}
    return JsonResponse(body("method_not_allowed", message), status=405, headers=headers)


def bad_request(_request: HttpRequest, exception: Exception) -> JsonResponse:
    """Return 400 (Django's handler400): unknown host, invalid encoding of the URL."""
    return JsonResponse(body("bad_request", BAD_REQUEST), status=400)


def not_found(_request: HttpRequest, exception: Exception) -> JsonResponse:
    """Return 404 (Django's handler404)."""
    return JsonResponse(body("not_found", NOT_FOUND), status=404)


def server_error(_request: HttpRequest) -> JsonResponse:
    """Return 500 (Django's handler500). Django has logged the traceback."""
    return JsonResponse(body("server_error", SERVER_ERROR), status=500)


def _application_error(error: ApplicationError) -> Response:
    content, headers = _content_and_headers(error)
    return Response(content, error.status_code, headers=headers)


def _content_and_headers(error: ApplicationError) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the response's body and headers."""
    fields = error.fields if isinstance(error, WrongInput) else None
    headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
    return body(error.code, error.message, fields), headers


def database_unavailable(error: Exception) -> JsonResponse:
    """Return 503 with Retry-After: too many connections, refused, or cancelled by a timeout."""
    logger.warning("database: %s", str(error).strip().splitlines()[0] if str(error) else error)
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
    return JsonResponse(body("unavailable", NO_DATABASE), status=503, headers=headers)


def _api_exception(error: exceptions.APIException) -> Response:
    if isinstance(error, exceptions.ValidationError):
        detail = error.detail if isinstance(error.detail, dict) else {"body": error.detail}
        fields = {name: _messages(value) for name, value in detail.items()}
        return Response(body("invalid", WRONG_INPUT, fields), error.status_code)
    code = getattr(error.detail, "code", error.default_code)
    return Response(body(str(code), str(error.detail)), error.status_code)


def _messages(detail: Any) -> list[str]:
    """Return a field's messages as a flat list; those of list items begin with the item's index."""
    if isinstance(detail, dict):
        return [f"{index}: {text}" for index, part in detail.items() for text in _messages(part)]
    return [str(text) for text in detail]
