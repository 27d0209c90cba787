"""Report what runs, and the active settings: from the services, not from a file."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import partial
from threading import Thread
from typing import Any

import httpx

from load_lab.errors import LabError
from load_lab.settings import Settings
from load_lab.stack import http
from load_lab.stack.backlog import unanswered
from load_lab.stack.engine import Engine, ServiceStatus
from load_lab.stack.latency import measure
from load_lab.stack.reported import query_backend, query_nginx

# For the services, which are asked at the same time.
_SECONDS = 3
# Measuring LAB_LATENCY_MS takes fewer of these delays than this.
_DELAYS = 20
_Answers = Mapping[str, Any]


def stack_status(engine: Engine) -> dict[str, Any]:
    """Return engine, services, active settings and delays; `settings` is empty when nothing
    runs.
    """
    services, settings = engine.services(), engine.settings()
    waiting = len(unanswered(settings.LAB_BACKEND_PORT)) if settings else 0
    answers = _answers(engine, settings) if settings else {}
    return {
        "engine": engine.name,
        "services": [asdict(_with_answer(each, answers, waiting)) for each in services],
        "settings": _active(settings, answers) if settings else {},
        "latency": _delays(engine, settings, answers) if settings else None,
    }


def active_settings(engine: Engine) -> dict[str, Any]:
    """Return the settings that backend and Nginx report; the others are those of the stack's
    start.
    """
    settings = engine.settings()
    return _active(settings, _answers(engine, settings)) if settings else {}


def _answers(engine: Engine, settings: Settings) -> _Answers:
    """Return what each service answers, or the error; None for one that does not answer in time."""
    health = f"{settings.prometheus_url}/-/healthy"
    questions: dict[str, Callable[[], object]] = {
        # Longer than it is waited for, so that it does not count as an answer.
        "prometheus": partial(http.get, health, timeout=2 * _SECONDS)
    }
    if settings.LAB_REFERENCE_APP == "on":
        token = _token(engine)
        questions["backend"] = lambda: query_backend(settings, token)["settings"]
        questions["nginx"] = partial(query_nginx, settings)
    return _ask(questions, _SECONDS)


def _token(engine: Engine) -> str:
    """Return the backend's token; a wrong one if it can't be read, which the backend refuses."""
    try:
        return engine.token()
    except LabError:
        return ""


def _ask(questions: Mapping[str, Callable[[], object]], seconds: float) -> _Answers:
    """Ask all at the same time. Who answers later keeps no one waiting: the threads end with the
    command.
    """
    answers: dict[str, Any] = dict.fromkeys(questions)

    def ask(name: str, question: Callable[[], object]) -> None:
        try:
            answers[name] = question()
        except (LabError, OSError, httpx.TransportError) as error:
            answers[name] = error

    threads = [Thread(target=ask, args=each, daemon=True) for each in questions.items()]
    for thread in threads:
        thread.start()
    end = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(end - time.monotonic(), 0))
    return dict(answers)


def _with_answer(service: ServiceStatus, answers: _Answers, waiting: int) -> ServiceStatus:
    """Return the service as one that does not answer, if that is so; `waiting`: the requests that
    the backend already had.
    """
    if service.state != "running" or answers.get(service.name, "") is not None:
        return service
    advice = f"see `lab logs {service.name}`"
    if service.name == "backend" and waiting:
        advice = (
            f"{waiting} earlier requests are before: `lab up` waits while they become fewer, "
            "`lab down` drops them"
        )
    return replace(service, state="no answer", detail=f"(none within {_SECONDS} s; {advice})")


def _active(settings: Settings, answers: _Answers) -> dict[str, Any]:
    start_settings = settings.model_dump()
    for name in ("backend", "nginx"):
        answer = answers.get(name, {})
        if not isinstance(answer, dict):
            problem = answer or f"{name} does not answer within {_SECONDS} s"
            return settings.model_dump() | {"note": f"not confirmed: {problem}"}
        start_settings |= answer
    return start_settings


def _delays(engine: Engine, settings: Settings, answers: _Answers) -> dict[str, Any] | None:
    """Return the delays, of a backend that answers; None if they can't be measured."""
    if not isinstance(answers.get("backend"), dict):
        return None
    question = {"latency": lambda: measure(settings, engine.token())}
    delays = _ask(question, _SECONDS + _DELAYS * settings.LAB_LATENCY_MS / 1000)["latency"]
    return delays if isinstance(delays, dict) else None
