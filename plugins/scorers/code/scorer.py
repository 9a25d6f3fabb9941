"""code: runs the programs that a model wrote together with their tests, as HumanEval and MBPP want.

A program that loops or exhausts memory ends this component. The host expects that, because the description says
`x-runs-answers`: it gives every program an instance of its own, and counts one that is killed as a wrong answer.
"""

import json
from dataclasses import dataclass

import sandbox
from candidate import EXTRACTIONS
from runner_plugin import invalid_config, invalid_input, option, plate, well_formed
from runner_plugin.scorer import Scorer, reference
from wit_world.exports import about


@dataclass
class Config:
    extraction: str = option(
        "fence",
        "Place of the program: fence (the first code block, or the whole answer), or as a task of "
        "lm-evaluation-harness: humaneval, humaneval-instruct, mbpp, mbpp-instruct.",
    )


class About(plate("code", "0.1.0", "Checks that a program passes its tests, as for HumanEval and MBPP", Config)):
    def describe(self):
        info = super().describe()
        schema = json.loads(info.config_schema)
        schema["properties"]["extraction"]["enum"] = list(EXTRACTIONS)
        schema["x-runs-answers"] = {"passed": "code", "killed": "code-killed"}
        return about.Info(info.name, info.version, info.summary, json.dumps(schema))


class Judge(Scorer):
    Config = Config

    def __init__(self, config):
        super().__init__(config)
        if config.extraction not in EXTRACTIONS:
            known = ", ".join(EXTRACTIONS)
            raise invalid_config(well_formed(f"key `extraction`: expected one of {known}, found `{config.extraction}`"))
        self.extract = EXTRACTIONS[config.extraction]

    def judge(self, exchange):
        expected = reference(exchange)
        if exchange.reference is None:
            # Nothing to test with: no score rather than a wrong one.
            return {}
        prompt, tests = self.task(exchange, expected)
        candidate = self.extract(prompt, exchange.output)
        passed = not candidate.is_empty and sandbox.passes(candidate.program, tests)
        return {"code": passed, "code-unparsed": candidate.is_empty}

    def task(self, exchange, expected):
        """The beginning of the program, and the program that tests it."""
        expected = expected if isinstance(expected, dict) else {}
        prompt, check, entry = expected.get("prompt", ""), expected.get("test"), expected.get("entry_point")
        asserted = expected.get("tests", expected.get("test_list"))
        setup = expected.get("setup", expected.get("test_setup_code", ""))
        tests = None
        if isinstance(check, str) and isinstance(entry, str) and entry.isidentifier():
            tests = f"{check}\ncheck({entry})"
        elif check is None and _are_texts(asserted):
            # The prompt of such a row is a sentence, not the beginning of a program.
            prompt = ""
            tests = "\n".join([setup, *asserted]) if isinstance(setup, str) else None
        if tests is None or not isinstance(prompt, str):
            raise self.unusable(
                exchange,
                "has no tests: expected a table with `prompt`, `test` and `entry_point` as HumanEval has, or with "
                "`tests` (a list of statements) and perhaps `setup`, as MBPP has",
            )
        try:
            # A test that is no program would make every answer wrong.
            return prompt, sandbox.Tests(tests)
        except (SyntaxError, ValueError) as error:
            raise self.unusable(exchange, f"has tests that are no Python: {error}") from None

    def unusable(self, exchange, what):
        return invalid_input(well_formed(f"the reference of sample {exchange.id} {what}"))


def _are_texts(value):
    return isinstance(value, list) and value and all(isinstance(one, str) for one in value)
