#!/usr/bin/env python3
"""The words of the repository: phrases in place of nouns, and sentences and lines that are too long, by area.

    host/benches/words.py              counts and compares with the table in README.md
    host/benches/words.py --list AREA  lists the places of an area
    host/benches/words.py --draw       writes lower counts, and the rows of new areas, to the table

The table is the only copy of the committed counts. No count may rise; to accept a higher one, delete its row and draw.
Read are the comments of Rust, its texts outside of tests, the comments and texts of Python, and Markdown for people.
"""

import argparse
import collections
import io
import pathlib
import re
import subprocess
import sys
import tokenize

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = ROOT / "host/benches/README.md"
START, END = "<!-- words: drawn by host/benches/words.py -->\n", "<!-- words: end -->"
KINDS = ["headless words", "question nouns", "question comments", "long comments", "long sentences"]
HEAD = f"| area | {' | '.join(KINDS)} |\n| --- |{' ---: |' * len(KINDS)}\n"
HEADLESS = re.compile(r"\b(those that|those of|that of|the one|so many|in words|of which)\b")
NOUN = re.compile(r"\bwhat (is|was|it|the|cannot|a|they|has|does|did|are|were|can|no|an|one)\b")
QUESTION = re.compile(r"\s*//[/!] (What|How|Whether|Which|Why|Where|When)\b")
COLUMNS, WORDS = 100, 30
# Comments and texts of Rust; raw texts and characters are matched first, so that no quote in them opens a text.
RUST = re.compile(r"""(?P<comment>//[^\n]*)|r(#*)"(?P<raw>.*?)"\2|(?P<char>'(?:\\.[^']*|[^\\'])')|"(?P<text>(?:[^"\\]|\\.)*)\"""", re.S)
TESTS = re.compile(r"#\[cfg\(test\)\]\n(?:#.*\n)*(?:pub )?mod \w+ \{")
# Contents of tests, and the rule itself, which quotes the phrases.
SKIPPED = re.compile(r"(^|/)(cases|goldens|snapshots)/|^tests/audit/|^\.github/STYLE\.md|^host/benches/words\.py")


def rust(text):
    """Yields the comments, and the texts outside of tests, with the numbers of their lines."""
    tests = TESTS.search(text)
    end, line, last = tests.start() if tests else len(text), 1, 0
    for found in RUST.finditer(text):
        line, last = line + text.count("\n", last, found.start()), found.start()
        if found["comment"] is not None:
            yield line, found["comment"]
        elif found.start() < end:
            for number, part in enumerate((found["raw"] or found["text"] or "").split("\n"), line):
                yield number, part


def python(text):
    """Yields the lines of comments and texts, with their numbers."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            yield from enumerate(token.string.split("\n"), token.start[0])


def split(text):
    """Splits a paragraph into sentences, in which each list of code and the address of each link is a word."""
    text = re.sub(r"`[^`]*`", "code", text)
    text = re.sub(r"code(?:,?(?: and| or)? code)+", "code", re.sub(r"\]\([^)]*\)", "]", text))
    return re.split(r"(?<=[.!?])[)*\"]*\s+", text)


def sentences(text):
    """Yields the sentences of Markdown's prose with the numbers of the lines where their paragraphs begin."""
    blank = lambda found: re.sub(r"[^\n]", "", found[0])
    text = re.sub(r"^```.*?^```|<[^>]*>", blank, text, flags=re.S | re.M)
    parts, begun = [], 0
    for number, line in enumerate([*text.split("\n"), ""], 1):
        is_row, is_item = line.startswith("|"), re.match(r"\s*([-*]|\d+\.)\s|#", line)
        if parts and (is_row or is_item or not line.strip()):
            yield from ((begun, sentence) for sentence in split(" ".join(parts)))
            parts = []
        if is_row:
            yield from ((number, sentence) for cell in line.split(" | ") for sentence in split(cell))
        elif line.strip():
            begun = begun if parts else number
            parts.append(line.strip())


def places():
    """Yields each area, kind, file and line of a place to mend."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    for name in listed.stdout.split("\0")[:-1]:
        file = pathlib.PurePath(name)
        if file.suffix not in (".rs", ".py", ".md") or SKIPPED.search(name) or not (ROOT / name).is_file():
            continue
        area = "/".join(file.parts[: 2 if len(file.parts) > 2 else 1])
        text = (ROOT / name).read_text(encoding="utf-8")
        if file.suffix == ".md":
            read = list(enumerate(text.split("\n"), 1))
            if name == "README.md" or file.parts[0] == ".github" or area == "host/guide":
                for number, sentence in sentences(text):
                    if len(sentence.split()) > WORDS:
                        yield area, "long sentences", name, number
        else:
            read = list((rust if file.suffix == ".rs" else python)(text))
        # Texts of a test are its data.
        is_test = file.parts[0] == "tests" or "tests" in file.parts or file.name == "tests.rs"
        for number, line in read:
            if is_test and not line.startswith(("//", "#")):
                continue
            if HEADLESS.search(line):
                yield area, KINDS[0], name, number
            if NOUN.search(line):
                yield area, "question nouns", name, number
        if file.suffix == ".rs":
            before = ""
            for number, line in enumerate(text.split("\n"), 1):
                if QUESTION.match(line) and before.strip()[:3] != line.strip()[:3]:
                    yield area, "question comments", name, number
                if len(line) > COLUMNS and line.lstrip().startswith("//"):
                    yield area, "long comments", name, number
                before = line


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", action="store_true", help="write the counts to the table")
    parser.add_argument("--list", metavar="AREA", help="list the places of an area")
    arguments = parser.parse_args()
    found = list(places())
    if arguments.list:
        print("".join(f"{name}:{line}: {kind}\n" for area, kind, name, line in found if area == arguments.list), end="")
        return 0
    now = collections.defaultdict(lambda: [0] * len(KINDS))
    for area, kind, _, _ in found:
        now[area][KINDS.index(kind)] += 1
    before, rest = README.read_text(encoding="utf-8").split(START)
    table, after = rest.split(END)
    rows = [line.strip("| ").split(" | ") for line in table.removeprefix(HEAD).splitlines()]
    limits = {row[0].strip("`"): [int(cell) for cell in row[1:]] for row in rows}
    if arguments.draw:
        drawn = {area: [min(pair) for pair in zip(counts, limits.get(area, counts))] for area, counts in now.items()}
        lines = (f"| `{area}` | {' | '.join(map(str, drawn[area]))} |\n" for area in sorted(drawn))
        README.write_text(before + START + HEAD + "".join(lines) + END + after, encoding="utf-8")
        return 0
    risen = [
        f"{area}: {count} {kind}, at most {limit} allowed; `host/benches/words.py --list {area}` lists them"
        for area, counts in sorted(now.items())
        for kind, count, limit in zip(KINDS, counts, limits.get(area, [0] * len(KINDS)))
        if count > limit
    ]
    print("".join(f"{line}\n" for line in risen), end="", file=sys.stderr)
    return int(bool(risen))


if __name__ == "__main__":
    sys.exit(main())
