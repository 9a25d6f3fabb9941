"""{{name}}: a scorer that looks for the reference in the answer."""

from dataclasses import dataclass

from runner_plugin import option, plate
from runner_plugin.scorer import Scorer, reference


@dataclass
class Config:
    ignore_case: bool = option(True, "Ignore the case of letters.")


About = plate("{{name}}", "0.1.0", "Checks that the answer holds the sample's reference.", Config)


class Judge(Scorer):
    Config = Config

    def __init__(self, config):
        super().__init__(config)
        self.exchanges = 0
        self.answered = 0

    def judge(self, exchange):
        self.exchanges += 1
        self.answered += exchange.output.strip() != ""
        expected = reference(exchange)
        if isinstance(expected, str):
            expected = [expected]
        if not isinstance(expected, list) or not all(isinstance(text, str) for text in expected):
            # Nothing to compare with: return no score rather than a wrong one.
            return {}
        return {"contains": any(self.folded(text) in self.folded(exchange.output) for text in expected)}

    def whole(self):
        return {"answered": self.answered / self.exchanges} if self.exchanges else {}

    def folded(self, text):
        return text.casefold() if self.config.ignore_case else text
