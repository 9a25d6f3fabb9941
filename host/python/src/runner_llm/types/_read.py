"""Helpers of the generated modules, which read JSON."""

from __future__ import annotations

import math
from typing import Any, Callable, Optional, TypeVar

T = TypeVar("T")


def amount(value: Any) -> float:
    """Reads a number, or the word `infinite`, for which JSON has no number."""
    return math.inf if value == "infinite" else float(value)


def optional(read: Callable[[Any], T], value: Any) -> Optional[T]:
    """Reads a value that may be absent."""
    return None if value is None else read(value)
