"""Support for scorers: a base class, and scores."""

import json

from runner_plugin import configured, well_formed
from wit_world.exports import scorer as api
from wit_world.imports import tokenizer


class Scorer:
    """Scores answers. Derive a class `Judge` from it, set `Config`, and write `judge`, and also `whole` if there are
    scores of the run as a whole."""

    Config = None
    """The dataclass of the user's settings; an instance is in `self.config`."""

    def __init__(self, config):
        self.config = config

    def judge(self, exchange):
        """The scores of one answer by name; an empty dict if it cannot be scored. The host computes their means."""
        raise NotImplementedError

    def whole(self):
        """Scores of the run as a whole by name, for measures that are not a mean of `judge`'s."""
        return {}

    # Called by the host.

    @classmethod
    def open(cls, config):
        return cls(configured(cls.Config, config))

    def score(self, exchange):
        return _scores(self.judge(exchange))

    def finish(self):
        return _scores(self.whole())


def reference(exchange):
    """The sample's reference as a value, None if it has none."""
    return None if exchange.reference is None else json.loads(exchange.reference)


def _scores(named):
    return [api.Score(well_formed(name), float(value)) for name, value in named.items()]


__all__ = ["Scorer", "reference", "tokenizer"]
