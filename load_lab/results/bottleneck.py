"""What limited a run, as the diagnosis found it."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

# `likely`: one cause leads clearly. `unclear`: two are close. `unseen`: too little was seen.
Certainty = Literal["likely", "unclear", "unseen"]


class Candidate(BaseModel):
    """A cause that a run points to; `share` of the time of a request, or of a resource, 0 to 1."""

    model_config = ConfigDict(frozen=True)

    name: str
    share: float
    evidence: str = ""


class Diagnosis(BaseModel):
    """What limited a run. `split_ms` has the time of one request by place; `predicted_rate` is what
    the busiest resource would allow, by the load's quiet part, `not_predicted` why that is not
    known. `is_no_limit`: errors that no load causes.
    """

    model_config = ConfigDict(frozen=True)

    cause: str | None = None
    certainty: Certainty = "unseen"
    headline: str = ""
    evidence: tuple[str, ...] = ()
    remedy: str = ""
    candidates: tuple[Candidate, ...] = ()
    split_ms: dict[str, float] = {}
    predicted_rate: float | None = None
    not_predicted: str = ""
    unseen: tuple[str, ...] = ()
    is_no_limit: bool = False
