"""{{name}}: a dataset of prompts, one a line of a text file."""

from dataclasses import dataclass

from runner_plugin import option, plate
from runner_plugin.dataset import Dataset, lines, sample, text


@dataclass
class Config:
    output_tokens: int = option(128, "Output tokens to request.")


About = plate("{{name}}", "0.1.0", "Prompts, one a line of the file that the scenario calls `prompts`.", Config)


class Generator(Dataset):
    Config = Config

    def samples(self):
        for number, line in lines("prompts"):
            prompt = text(line, "prompts", number).strip()
            if prompt:
                yield sample(f"prompt-{number:06}", prompt, output_tokens=self.config.output_tokens)
