"""Sessions of three turns."""

import itertools
from dataclasses import dataclass

from runner_plugin import plate
from runner_plugin.dataset import Dataset, Role, following, message, sample


@dataclass
class Config:
    pass


About = plate("mine", "0.1.0", "Sessions of three turns.", Config)


class Generator(Dataset):
    Config = Config

    def samples(self):
        for number in itertools.count(1):
            text = f"Turn {number}."
            if number % 3 == 1:
                yield sample(f"{number}", text, reference=f"{number}")
            else:
                messages = [message(Role.USER, text)]
                yield following(f"{number}", f"{number - 1}", 1_000, messages, reference=number)
