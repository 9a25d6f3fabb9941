"""The licences of the crates in the program and in its plugins. Most ask that a copy of the code carries their text."""

import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PLUGINS = ("wasm32-unknown-unknown", ["--package=backend-*", "--package=dataset-*", "--package=scorer-*"])
STARTS = ("LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE")


def output(*words):
    return subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def notices(target):
    """Returns each text once, below the crates that it is of."""
    texts = {}
    for triple, members in ((target, ["--package=runner"]), PLUGINS):
        known = output("cargo", "metadata", "--locked", "--format-version=1", f"--filter-platform={triple}")
        known = {(package["name"], "v" + package["version"]): package for package in json.loads(known)["packages"]}
        linked = ["--edges=normal,no-proc-macro", "--prefix=none", "--format={p}"]
        linked = output("cargo", "tree", "--locked", f"--target={triple}", *members, *linked)
        for crate in {tuple(line.split()[:2]) for line in linked.splitlines() if line}:
            if known[crate]["source"] is None:
                continue
            files = [file for file in Path(known[crate]["manifest_path"]).parent.rglob("*") if file.suffix != ".rs"]
            files = [file for file in files if file.name.upper().startswith(STARTS) and file.is_file()]
            found = {file.read_text(errors="replace").strip() for file in files}
            for text in found or {f"{known[crate]['license']}; the crate has no text of its licence"}:
                texts.setdefault(text, set()).add(" ".join(crate))
    parts = sorted((", ".join(sorted(crates)), text) for text, crates in texts.items())
    rule = "=" * 80
    written = "".join(f"\n{rule}\n{crates}\n{rule}\n\n{text}\n" for crates, text in parts)
    return "This program contains code of the crates below, under these licences.\n" + written
