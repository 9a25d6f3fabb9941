"""Numbers in text, as exact decimals: the place of an answer's final number, and the forms of numbers.

Looked for in this order: behind the last `####` (GSM8K's marker), in the last `\\boxed{…}` (MATH's), behind the last
"answer is" or "answer:", and at last the last number of all.
"""

import re
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Number:
    value: Fraction
    is_percent: bool = False
    is_marked: bool = False
    """True if the text marks this number as the answer."""


# Digits in groups of three, or as they come; decimals; a power of ten; a fraction's denominator.
DIGITS = r"(?:\d{{1,3}}(?:{group}\d{{3}})+(?!\d)|\d+)"
PLAIN = r"(?P<sign>[-+−])?\s?[$€£¥]?\s?(?P<whole>{digits})?(?:{point}(?P<decimals>\d+))?(?:[eE](?P<power>[-+]?\d{{1,3}})(?![\w]))?"
TAIL = r"(?:\s?/\s?(?P<denominator>\d+(?![\d.,]))(?!\s?/))?(?P<percent>\s?(?:\\?%|percent\b|per cent\b))?"


def _pattern(group, point):
    digits = DIGITS.format(group=group)
    # Not inside a word such as `x2`, nor a minus that stands between two numbers.
    return re.compile(r"(?<![\w.])" + PLAIN.format(digits=digits, point=point) + TAIL)


POINT = _pattern(group=r"[,'\u2019\u00a0\u202f]", point=r"\.")
COMMA = _pattern(group=r"[.'\u2019\u00a0\u202f]", point=",")

FRACTION = re.compile(r"([-+−]?)\s?\\[dt]?frac\s?\{\s?(-?\d+)\s?\}\s?\{\s?(-?\d+)\s?\}")
MARKS = (
    re.compile(r"####"),
    re.compile(r"(?:final\s+answer|answer|result)\s*(?:\*\*)?\s*(?:is|are|=|:)", re.IGNORECASE),
)
# Text between a marker and its number: `**`, `$`, `\(`, `approximately`.
NEAR = 80
LONGEST = 1000


def final_number(text, decimal_comma):
    """The number that a text ends in, or None."""
    marked = _after_mark(text, MARKS[0], decimal_comma) or _boxed(text, decimal_comma)
    marked = marked or _after_mark(text, MARKS[1], decimal_comma)
    if marked:
        return Number(marked.value, marked.is_percent, is_marked=True)
    found = _numbers(text[-LONGEST:], decimal_comma) or _numbers(text, decimal_comma)
    return found[-1] if found else None


def number_in(text, decimal_comma):
    """The first number of a text, or None."""
    found = _numbers(text, decimal_comma)
    return found[0] if found else None


def _after_mark(text, mark, decimal_comma):
    ends = [match.end() for match in mark.finditer(text)]
    return number_in(text[ends[-1] : ends[-1] + NEAR].split("\n\n")[0], decimal_comma) if ends else None


def _boxed(text, decimal_comma):
    """The number in the last `\\boxed{…}`, whose braces may hold others."""
    start = text.rfind("\\boxed")
    opened = text.find("{", start) if start >= 0 else -1
    if opened < 0:
        return None
    depth = 0
    for at in range(opened, min(len(text), opened + LONGEST)):
        depth += (text[at] == "{") - (text[at] == "}")
        if depth == 0:
            found = _numbers(text[opened + 1 : at], decimal_comma)
            return found[-1] if found else None
    return None


def _numbers(text, decimal_comma):
    # LaTeX: \frac{1}{2} is 1/2, {,} and \, are thousands separators, \$ a dollar.
    text = FRACTION.sub(r" \1\2/\3 ", text).replace("{,}", ",").replace("\\,", ",").replace("\\$", "$")
    found = []
    for match in (COMMA if decimal_comma else POINT).finditer(text):
        number = _number(match)
        if number is not None:
            found.append(number)
    return found


def _number(match):
    if match["whole"] is None and match["decimals"] is None:
        return None
    digits = re.sub(r"\D", "", match["whole"] or "0")
    decimals = match["decimals"] or ""
    if len(digits) + len(decimals) > LONGEST:
        return None
    value = Fraction(int(digits + decimals), 10 ** len(decimals))
    if match["power"]:
        value *= Fraction(10) ** int(match["power"])
    if match["denominator"] and int(match["denominator"]):
        value /= int(match["denominator"])
    return Number(-value if match["sign"] in ("-", "−") else value, is_percent=match["percent"] is not None)
