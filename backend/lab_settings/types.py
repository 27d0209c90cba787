"""Types of the settings' values. An error names the allowed values."""

import re
from ipaddress import IPv4Address
from typing import Annotated

from pydantic import AfterValidator, Field

from lab_settings.durations import seconds

# Linux numbers at most 8192 CPUs. A longer list would only fill the memory.
_CPU = r"[0-9]{1,4}"
_MAX_RANGES = 1000


def _cpu_list(value: str) -> str:
    if value and not re.fullmatch(rf"{_CPU}(-{_CPU})?(,{_CPU}(-{_CPU})?)*", value):
        raise ValueError("a CPU list such as 0-2,5, or nothing")
    ranges = re.findall(rf"({_CPU})-({_CPU})", value)
    if any(int(first) > int(last) for first, last in ranges) or len(ranges) > _MAX_RANGES:
        raise ValueError("a CPU list such as 0-2,5, or nothing")
    return value


def cpu_numbers(cpu_list: str) -> set[int]:
    """Return the CPU numbers of a list: 0-2,5 gives 0, 1, 2 and 5; none of an empty one."""
    cpus: set[int] = set()
    for part in filter(None, cpu_list.split(",")):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return cpus


def is_whole_number(value: str) -> bool:
    """Return whether the value is a number in ASCII digits."""
    return re.fullmatch("-?[0-9]{1,18}", value) is not None


def _address(value: str) -> str:
    try:
        return str(IPv4Address(value))
    except ValueError:
        raise ValueError("an IPv4 address of this machine, or 0.0.0.0 for all of them") from None


def _pool(value: str) -> str:
    if value != "off" and not (re.fullmatch("[0-9]{1,4}", value) and 1 <= int(value) <= 1000):
        raise ValueError("off, or a size from 1 to 1000")
    return value


def _ttl(value: str) -> str:
    if not re.fullmatch(r"[0-9]{1,4}(s|m|h)", value) or not 1 <= seconds(value) <= 3600:
        raise ValueError("a duration from 1s to 1h, such as 1s, 30s or 5m")
    return value


Port = Annotated[int, Field(ge=1, le=65535)]
# This port and the following ones.
PortOfSeveral = Annotated[int, Field(ge=1, le=65500)]
Seconds = Annotated[int, Field(ge=1, le=3600)]
CpuList = Annotated[str, AfterValidator(_cpu_list)]
Address = Annotated[str, AfterValidator(_address)]
PoolSize = Annotated[str, AfterValidator(_pool)]
Ttl = Annotated[str, AfterValidator(_ttl)]
