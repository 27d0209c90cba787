"""Validated input of the workbench's routes."""

from typing import Any

from config.http.errors import WrongInput
from django import forms
from django.http import HttpRequest

CPU_SIZE = 10**7
MAX_CPU_SIZE = 10**8
SLEEP_SECONDS = 0.5
MAX_SLEEP_SECONDS = 5
MAX_CONTENT_LENGTH = 10_000


class CpuForm(forms.Form):
    n = forms.IntegerField(
        min_value=1,
        max_value=MAX_CPU_SIZE,
        required=False,
        error_messages={"invalid": f"Must be a whole number from 1 to {MAX_CPU_SIZE}."},
    )


class SleepForm(forms.Form):
    seconds = forms.FloatField(
        min_value=0,
        max_value=MAX_SLEEP_SECONDS,
        required=False,
        error_messages={"invalid": f"Must be a number from 0 to {MAX_SLEEP_SECONDS}."},
    )


class PostForm(forms.Form):
    title = forms.CharField(max_length=200)
    content = forms.CharField(max_length=MAX_CONTENT_LENGTH)


def cpu_size(request: HttpRequest) -> int:
    """Return how many numbers to sum.

    Raises:
        WrongInput: not a number, or more than one request may cost.
    """
    n: int | None = _validate(CpuForm(request.GET))["n"]
    return CPU_SIZE if n is None else n


def sleep_seconds(request: HttpRequest) -> float:
    """Return the duration of each of the two sleeps.

    Raises:
        WrongInput: not a number, or longer than a request may wait.
    """
    seconds: float | None = _validate(SleepForm(request.GET))["seconds"]
    return SLEEP_SECONDS if seconds is None else seconds


def post_fields(request: HttpRequest) -> dict[str, Any]:
    """Return title and content of a new post, from a form.

    Raises:
        WrongInput: one is missing or too long.
    """
    return _validate(PostForm(request.POST))


def _validate(form: forms.Form) -> dict[str, Any]:
    if not form.is_valid():
        raise WrongInput({name: list(map(str, messages)) for name, messages in form.errors.items()})
    return form.cleaned_data
