"""What limited a run."""

from enum import StrEnum


class Limit(StrEnum):
    """Its value is stored; `short` is for tables and charts, `text` follows "limited by"."""

    short: str
    text: str

    def __new__(cls, value: str, short: str = "", text: str = "") -> "Limit":
        member = str.__new__(cls, value)
        member._value_, member.short, member.text = value, short, text
        return member

    GENERATOR = "generator_cpu", "generator", "the load generator's CPU"
    VIRTUAL_USERS = "vu_cap", "VU cap", "the number of virtual users"
    OTHERS = "others", "other programs", "other programs"
    ERRORS = "errors", "errors", "errors, while no part of it was full"
    # Of a load that exceeded no limit.
    LOAD = "load", "end of load", "the end of the load"
    # Of one that broke before.
    UNRECORDED = "unrecorded", "gap", "what Prometheus lacks of the load"
    TARGET = "target", "target", "the target"
    UNSEEN = (
        "unseen",
        "not visible",
        "what is not visible from here: the target, the way to it, or pods of the load",
    )
    NONE = "none", "nothing", "nothing"
