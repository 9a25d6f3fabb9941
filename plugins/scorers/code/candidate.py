"""From an answer to the program that is run, by the rules of EleutherAI's lm-evaluation-harness 0.4.13
(`lm_eval/tasks/humaneval`, `lm_eval/tasks/mbpp`), and `fence` for servers that do not continue a begun answer."""

import re
from dataclasses import dataclass

# Where the tasks end the generation.
HUMANEVAL_ENDS = ("\nclass", "\ndef", "\n#", "\nif", "\nprint")
MBPP_ENDS = ("[DONE]",)

# As `extract_code_blocks` of the task mbpp_instruct.
BLOCK = re.compile(r"```(?:\w+)?\n?(.*?)\n?```", re.DOTALL)
# A block whose language stands on the line of its fence; one that was cut off ends with the answer.
FENCE = re.compile(r"```[^\n`]*\n(.*?)(?:\n[ \t]*```|\Z)", re.DOTALL)


@dataclass(frozen=True)
class Candidate:
    program: str
    is_empty: bool
    """Whether the answer held nothing to run."""


def humaneval(prompt, answer):
    """The answer continues the prompt."""
    return _after(prompt, _cut(answer, HUMANEVAL_ENDS))


def humaneval_instruct(prompt, answer):
    """The answer continues the prompt within a code block that was begun for it."""
    return _after(prompt, _cut(answer, HUMANEVAL_ENDS).split("```")[0])


def mbpp(_prompt, answer):
    """The answer is the program."""
    return _after("", _cut(answer, MBPP_ENDS))


def mbpp_instruct(_prompt, answer):
    """The first code block; the fence that begins it was begun for the answer."""
    blocks = BLOCK.findall("```" + answer) or BLOCK.findall(answer.replace("```python", "```"))
    return _after("", blocks[0] if blocks else "")


def fence(prompt, answer):
    """The first code block, or the whole answer where there is none, after the prompt. A function that the prompt only
    begins is a whole one with its docstring as its body, and the answer defines it again."""
    found = FENCE.search(answer)
    begun = prompt if not prompt or prompt.endswith("\n") else prompt + "\n"
    return _after(begun, found[1] if found else answer)


EXTRACTIONS = {
    "fence": fence,
    "humaneval": humaneval,
    "humaneval-instruct": humaneval_instruct,
    "mbpp": mbpp,
    "mbpp-instruct": mbpp_instruct,
}


def _after(prompt, code):
    return Candidate(prompt + code, is_empty=not code.strip())


def _cut(answer, ends):
    """The answer before the first of the ends."""
    places = [place for place in map(answer.find, ends) if place >= 0]
    return answer[: min(places)] if places else answer
