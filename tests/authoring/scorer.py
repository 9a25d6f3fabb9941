"""Does what the reference of each exchange says."""

import os
import random
import sys
import time
from dataclasses import dataclass

from runner_plugin import invalid_input, other, plate, protocol
from runner_plugin.scorer import Scorer, reference


@dataclass
class Config:
    pass


About = plate("mine", "0.1.0", "Does what it is told.", Config)


class Judge(Scorer):
    Config = Config

    def judge(self, exchange):
        # A test also gives references of other kinds.
        does = getattr(self, f"{reference(exchange)}", None)
        return does() if does else {}

    def prints(self):
        print("from", "print")
        print("from standard error", file=sys.stderr)
        return {"well": 1}

    def clocks(self):
        return {"time": time.time(), "monotonic": time.monotonic(), "performance": time.perf_counter()}

    def chance(self):
        return {"random": random.random(), "system": os.urandom(1)[0]}

    def key(self):
        return {}["no such key"]  # here: key

    def deeper(self):
        return sorted([1, "a"])  # here: deeper

    def exits(self):
        sys.exit(3)  # here: exits

    def raises_exit(self):
        raise SystemExit(3)  # here: raises_exit

    def late(self):
        import datetime  # here: late

        return datetime

    def half(self):
        raise ValueError("half \ud83d a character")  # here: half

    def half_input(self):
        raise invalid_input("half \ud83d a character")

    def half_protocol(self):
        raise protocol("half \ud83d a character")

    def half_other(self):
        raise other("half \ud83d a character")
