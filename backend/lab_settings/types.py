"""Types of the settings' values. An error names the allowed values."""

import re
from ipaddress import IPv4Address
from typing import Annotated

from pydantic import BeforeValidator, Field

from lab_settings.durations import seconds


def _cpu_list(value: str) -> str:
    if value and not re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", value):
        raise ValueError("a CPU list such as 0-2,5, or nothing")
    for first, last in re.findall(r"(\d+)-(\d+)", value):
        if int(first) > int(last):
            raise ValueError("a CPU list such as 0-2,5, or nothing")
    return value


def _address(value: str) -> str:
    try:
        return str(IPv4Address(value))
    except ValueError:
        raise ValueError("an IPv4 address of this machine, or 0.0.0.0 for all of them") from None


def _pool(value: str) -> str:
    if value != "off" and not (value.isdecimal() and 1 <= int(value) <= 1000):
        raise ValueError("off, or a size from 1 to 1000")
    return value


def _ttl(value: str) -> str:
    if not re.fullmatch(r"\d{1,4}(s|m|h)", value) or not 1 <= seconds(value) <= 3600:
        raise ValueError("a duration from 1s to 1h, such as 1s, 30s or 5m")
    return value


Port = Annotated[int, Field(ge=1, le=65535)]
# This port and the following ones.
PortOfSeveral = Annotated[int, Field(ge=1, le=65500)]
Seconds = Annotated[int, Field(ge=1, le=3600)]
CpuList = Annotated[str, BeforeValidator(_cpu_list)]
Address = Annotated[str, BeforeValidator(_address)]
PoolSize = Annotated[str, BeforeValidator(_pool)]
Ttl = Annotated[str, BeforeValidator(_ttl)]
