"""The two ways to run the stack, behind one interface; nothing else knows which one runs."""

from lab.engine.base import Engine, ServiceStatus
from lab.engine.choice import choose_engine

__all__ = ["Engine", "ServiceStatus", "choose_engine"]
