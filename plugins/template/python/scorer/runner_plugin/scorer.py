"""What a scorer needs: a class to derive from, and scores."""

import json

from runner_plugin import configured, well_formed
from wit_world.exports import scorer as api
from wit_world.imports import tokenizer


class Scorer:
    """A judge of answers. Derive a class `Judge` from it, set `Config`, and write `judge`, and `whole` where there
    is something to say of the run as a whole."""

    Config = None
    """The dataclass of what the user may set; an instance is in `self.config`."""

    def __init__(self, config):
        self.config = config

    def judge(self, exchange):
        """The scores of one answer by name; an empty dict where it cannot be judged. The host gives their mean."""
        raise NotImplementedError

    def whole(self):
        """Scores of the run as a whole by name, for measures that are not a mean of `judge`'s."""
        return {}

    # What the host calls.

    @classmethod
    def open(cls, config):
        return cls(configured(cls.Config, config))

    def score(self, exchange):
        return _scores(self.judge(exchange))

    def finish(self):
        return _scores(self.whole())


def reference(exchange):
    """The sample's reference as a value, None where it has none."""
    return None if exchange.reference is None else json.loads(exchange.reference)


def _scores(named):
    return [api.Score(well_formed(name), float(value)) for name, value in named.items()]


__all__ = ["Scorer", "reference", "tokenizer"]
