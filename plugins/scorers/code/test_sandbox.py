"""`python3 -m unittest test_sandbox` in this folder: the programs of `cases/hostile` that tamper with their tests, in plain
Python 3.11 or newer. The others loop, fork or exhaust memory, and run in the component alone."""

import json
import subprocess
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).parent
CASES = HERE / "cases/hostile"
FIRST = "spoils-builtins"
RUN = """
import json, sys
import sandbox
program, tests = json.load(sys.stdin)
result = sandbox.passes(program, sandbox.Tests(tests))
sys.__stdout__.write(str(float(result)))
"""


class Tampering(unittest.TestCase):
    def test_programs_that_tamper_with_their_tests(self):
        exchanges = json.loads((CASES / "exchanges.json").read_text())
        scores = json.loads((CASES / "scores.json").read_text())["exchanges"]
        expected = {row["id"]: row["scores"]["code"] for row in scores}
        ids = [row["id"] for row in exchanges]
        tried = exchanges[ids.index(FIRST) :]
        self.assertGreater(len(tried), 8)
        for row in tried:
            program = row["output"].removeprefix("```python\n").removesuffix("\n```")
            tests = "\n".join(row["reference"]["tests"])
            with self.subTest(row["id"]):
                ran = subprocess.run(
                    [sys.executable, "-c", RUN],
                    input=json.dumps([program, tests]),
                    cwd=HERE,
                    capture_output=True,
                    text=True,
                    timeout=120,
                )
                self.assertEqual(ran.stdout, str(expected[row["id"]]), ran.stderr)


if __name__ == "__main__":
    unittest.main()
