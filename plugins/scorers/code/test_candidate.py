"""`python3 -m unittest test_candidate` in this folder: plain Python, no component."""

import unittest

from candidate import EXTRACTIONS

PROMPT = "def f(x):\n    '''Doubles.'''\n"


class Candidates(unittest.TestCase):
    def test_programs(self):
        cases = [
            ("humaneval", "    return 2 * x\n\ndef g():\n    pass", PROMPT + "    return 2 * x\n"),
            ("humaneval", "    return 2 * x\nprint(f(1))\n#", PROMPT + "    return 2 * x"),
            ("humaneval", "    # a comment\n    return 2 * x", PROMPT + "    # a comment\n    return 2 * x"),
            ("humaneval-instruct", "    return 2 * x\n```\nDone.", PROMPT + "    return 2 * x\n"),
            ("mbpp", "def f(x):\n  return 2 * x\n[DONE]\nMore", "def f(x):\n  return 2 * x\n"),
            ("mbpp-instruct", "\ndef f(x): return 2 * x\n```\n", "def f(x): return 2 * x"),
            ("mbpp-instruct", "python\nx = 1\n```\n```\ny = 2\n```", "x = 1"),
            # The harness takes the first word for the block's language.
            ("mbpp-instruct", "def f(x): return 2 * x\n```", " f(x): return 2 * x"),
            ("mbpp-instruct", "nothing", ""),
            ("fence", "Here:\n```python\ndef f(x): return 2 * x\n```\nDone.", PROMPT + "def f(x): return 2 * x"),
            ("fence", "```\n    return 2 * x\n  ```", PROMPT + "    return 2 * x"),
            ("fence", "```py\ns = '```'\n", PROMPT + "s = '```'\n"),
            ("fence", "    return 2 * x", PROMPT + "    return 2 * x"),
        ]
        for extraction, answer, program in cases:
            with self.subTest(extraction=extraction, answer=answer):
                self.assertEqual(EXTRACTIONS[extraction](PROMPT, answer).program, program)

    def test_answers_without_code(self):
        for extraction in EXTRACTIONS:
            self.assertTrue(EXTRACTIONS[extraction](PROMPT, " \n").is_empty, extraction)
            self.assertFalse(EXTRACTIONS[extraction](PROMPT, "\n    x = 1\n```").is_empty, extraction)

    def test_hostile_text_takes_no_time(self):
        for text in ("`" * 100_000, "```\n" * 30_000, "```python" * 20_000, "\n" * 200_000, "[DONE]" * 50_000):
            for extraction in EXTRACTIONS.values():
                extraction(PROMPT, text)


if __name__ == "__main__":
    unittest.main()
