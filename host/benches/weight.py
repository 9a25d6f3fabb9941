#!/usr/bin/env python3
"""The weight of the repository: lines of Rust, the cost of builds from a fresh clone, and the size of the program.

    host/benches/weight.py          counts lines and compares them with the table in README.md
    host/benches/weight.py --draw   writes the lines to the table
    host/benches/weight.py --measure demo|dist|test|all [--draw]
                                    measures builds of the last commit in fresh clones, below TMPDIR; hours for `all`

The table is the only copy of the committed numbers; README.md states above it which growth fails.
"""

import argparse
import collections
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = ROOT / "host/benches/README.md"
SELF = "host/benches/weight.py"
START, END = f"<!-- weight: drawn by {SELF} -->", "<!-- weight: end -->"
HEAD = ["| part | weight | unit |", "| --- | ---: | --- |"]
ROW = re.compile(r"\| (.+) \| ([\d,]+(?:\.\d+)?(?: after demo)?|not measured) \| (processor minutes|wall minutes|MiB|lines) \|")
COMMANDS = ["demo", "dist", "test"]
PROGRAM, TOTAL = "target/dist/runner", "all Rust"
# No manifest of their folders is a crate's.
OUTSIDE = "`tests`, `host/benches`, `plugins/template`: outside crates"
GROWTH, CRATE_LINES = 1.05, 200


def read():
    """Reads the text before the table, its rows as {(part, unit): cell}, and the text after the table."""
    text = README.read_text(encoding="utf-8")
    name = README.relative_to(ROOT)
    if text.count(START) != 1 or text.count(END) != 1 or text.index(START) > text.index(END):
        sys.exit(f"{name}: expected the table of weight once, between `{START}` and `{END}`")
    before, rest = text.split(START)
    table, after = rest.split(END)
    rows, first = {}, before.count("\n") + 2
    for number, line in enumerate(table.strip("\n").splitlines(), first):
        if number < first + len(HEAD):
            if line != HEAD[number - first]:
                sys.exit(f"{name}:{number}: expected `{HEAD[number - first]}`, found `{line}`")
            continue
        row = ROW.fullmatch(line)
        if not row or row.group(1, 3) in rows or (row[3] == "lines" and value(row[2]) is None):
            sys.exit(f"{name}:{number}: expected `| PART | NUMBER | UNIT |`, each part and unit once, found `{line}`")
        rows[row.group(1, 3)] = row[2]
    return before, rows, after


def value(cell):
    """Reads the number of a cell; none where the cell holds a remark."""
    try:
        return float(cell.replace(",", ""))
    except ValueError:
        return None


def draw(before, rows, after):
    lines = [f"| {part} | {cell} | {unit} |" for (part, unit), cell in rows.items()]
    README.write_text("\n".join([before + START, *HEAD, *lines, END + after]), encoding="utf-8")


def lines():
    """Counts the lines of the Rust files that git tracks, by the nearest folder with a manifest."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.rs", "*Cargo.toml"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    files = [pathlib.PurePath(file) for file in listed.stdout.split("\0")[:-1] if (ROOT / file).exists()]
    crates = {file.parent for file in files if file.name == "Cargo.toml"}
    counts = collections.Counter()
    for file in files:
        if file.suffix == ".rs":
            crate = next((folder for folder in file.parents if folder in crates), file.parents[-1])
            counts[OUTSIDE if crate == file.parents[-1] else f"`{crate}`"] += (ROOT / file).read_bytes().count(b"\n")
    return {(part, "lines"): f"{count:,}" for part, count in [(TOTAL, sum(counts.values())), *sorted(counts.items())]}


def measure(command):
    """Measures `cargo xtask COMMAND` in a fresh clone, with all processes that it waits for."""
    environment = {name: text for name, text in os.environ.items() if name != "CARGO_TARGET_DIR"}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "clone", "--quiet", "--local", ROOT, folder], check=True)
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        code = subprocess.call(["cargo", "xtask", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL)
        wall, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
        if code:
            sys.exit(f"`cargo xtask {command}` failed in a fresh clone with exit code {code}")
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        part = f"`cargo xtask {command}`"
        rows = {(part, "processor minutes"): f"{seconds / 60:.1f}", (part, "wall minutes"): f"{wall / 60:.1f}"}
        if command == "dist":
            rows[f"`{PROGRAM}`", "MiB"] = f"{(pathlib.Path(folder) / PROGRAM).stat().st_size / 2**20:.1f}"
    return rows


def grown(part, unit, was, now):
    """Returns true if a part grew by more than README.md allows."""
    if unit == "wall minutes" or was is None or now <= was * GROWTH:
        return False
    return unit != "lines" or part == TOTAL or now - was > CRATE_LINES


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", action="store_true", help="write the numbers to the table")
    parser.add_argument("--measure", choices=[*COMMANDS, "all"], help="measure builds instead of counting lines")
    arguments = parser.parse_args()
    before, rows, after = read()
    if arguments.measure:
        present, again = {}, f"{SELF} --measure {arguments.measure} --draw"
        for command in COMMANDS if arguments.measure == "all" else [arguments.measure]:
            present.update(measure(command))
        for (part, unit), cell in present.items():
            print(f"{part}: {rows.get((part, unit), 'not measured')} {unit} in the table, {cell} now")
    else:
        present, again = lines(), f"{SELF} --draw"
    if arguments.draw:
        kept = rows if arguments.measure else {key: cell for key, cell in rows.items() if key[1] != "lines"}
        return draw(before, {**kept, **present}, after)
    failed = False
    for (part, unit), cell in present.items():
        if unit == "lines" and (part, unit) not in rows:
            failed = True
            print(f"{part}: no row in the table, {cell} {unit} now; add it with `{again}`", file=sys.stderr)
        elif grown(part, unit, value(rows.get((part, unit), "")), value(cell)):
            failed = True
            was = rows[part, unit]
            print(f"{part}: {was} {unit} in the table, {cell} now; shrink it, or run `{again}`", file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
