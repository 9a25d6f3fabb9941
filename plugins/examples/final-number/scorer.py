"""final-number: whether the last number of an answer is the reference, as sets of word problems want."""

from dataclasses import dataclass
from fractions import Fraction

from numbers_in_text import final_number, number_in
from runner_plugin import invalid_input, option, plate, well_formed
from runner_plugin.scorer import Scorer, reference


@dataclass
class Config:
    tolerance: float = option(0.0, "Largest distance of a number from the reference, as a share of the reference.")
    percent: bool = option(True, "Count `12 %` as `0.12` as well as `12`.")
    decimal_comma: bool = option(False, "Read a comma before decimals, as in `3,5`.")
    reasoning: bool = option(False, "Search the reasoning if the answer itself holds no number.")


About = plate("final-number", "0.1.0", "Whether an answer ends in the right number.", Config)


class Judge(Scorer):
    Config = Config

    def __init__(self, config):
        super().__init__(config)
        # As it is written: 0.1 is a tenth.
        self.tolerance = Fraction(repr(config.tolerance))
        self.judged = 0
        self.answered = 0
        self.marked = 0

    def judge(self, exchange):
        expected = self.expected(exchange)
        if expected is None:
            # Nothing to compare with: return no score rather than a wrong one.
            return {}
        self.judged += 1
        found = final_number(exchange.output, self.config.decimal_comma)
        if found is None and self.config.reasoning:
            found = final_number(exchange.reasoning, self.config.decimal_comma)
        if found is None:
            return {"correct": False}
        self.answered += 1
        self.marked += found.is_marked
        return {"correct": self.same(found, expected)}

    def whole(self):
        """Beside the mean of `correct`: the shares of answers that held a number, and that marked it."""
        if not self.judged:
            return {}
        return {"answered": self.answered / self.judged, "marked": self.marked / self.judged}

    def expected(self, exchange):
        """The reference's number: a JSON number, or a text with the solution as GSM8K has it (`… #### 42`)."""
        value = reference(exchange)
        if value is None:
            return None
        if isinstance(value, dict):
            value = value.get("answer")
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return number_in(repr(value), decimal_comma=False)
        found = final_number(value, self.config.decimal_comma) if isinstance(value, str) else None
        if found is None:
            raise invalid_input(
                well_formed(f"sample `{exchange.id}`: expected a reference that holds a number, found {value!r}")
            )
        return found

    def same(self, found, expected):
        allowed = abs(expected.value) * self.tolerance
        candidates = {found.value}
        # `12 %` is answered with `12` and with `0.12`, and the other way round.
        if self.config.percent and found.is_percent and not expected.is_percent:
            candidates.add(found.value / 100)
        if self.config.percent and expected.is_percent and not found.is_percent:
            candidates.add(found.value * 100)
        return any(abs(value - expected.value) <= allowed for value in candidates)
