"""Writes the files of the tests, in the formats in which the datasets are published, and the prompts that a reference
implementation makes of them.

    python3 -m venv venv
    venv/bin/pip install datasets==5.2.0 pyarrow==26.0.1
    venv/bin/pip install --no-deps lm-eval==0.4.13 bfcl-eval==2026.3.23
    venv/bin/pip install jinja2 more_itertools numpy pyyaml requests tenacity tqdm word2number
    venv/bin/python plugins/datasets/qa/goldens/make.py

The rows are drawn from a fixed seed and the words below; nothing in them is of the datasets. The prompts, stop texts
and limits come from the packages' own tasks, of which only the loading of the dataset is replaced. Empty modules
stand in for packages that making prompts does not need.
"""

import csv
import gzip
import importlib
import json
import logging
import os
import random
import sys
import tempfile
import types
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
FILES = HERE / "files"
SEED = 20261123
TEMPORARY = tempfile.TemporaryDirectory()

logging.disable(logging.WARNING)
os.environ["TQDM_DISABLE"] = "1"


class Anything(types.ModuleType):
    """A module that has every name, and does nothing."""

    __path__ = []

    def __getattr__(self, key):
        if key.startswith("__"):
            raise AttributeError(key)
        return lambda *_, **__: Anything(key)


ABSENT = ["evaluate", "sacrebleu", "sklearn", "sklearn.metrics", "jieba", "fuzzywuzzy", "rouge"]
ABSENT += ["tree_sitter", "tree_sitter_java", "tree_sitter_javascript"]
for name in ABSENT:
    sys.modules[name] = Anything(name)

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
from lm_eval.api.task import ConfigurableTask
from lm_eval.tasks._yaml_loader import load_yaml

datasets.disable_progress_bars()
TASKS = Path(importlib.util.find_spec("lm_eval").submodule_search_locations[0]) / "tasks"

draw = random.Random(SEED)
WORDS = "a boat carries seven blue lamps from the harbour to Überlingen, 東京 or São Paulo while {{ nobody }} counts 12 % of them".split()
ODD = ["  two  spaces", "a [title] here", "tab\there", "line\nbreak", "'quoted' \"twice\"", "{% raw %}", "back\\slash n \\n", "ends. ", " begins"]


def text(least=4, most=9, odd=0.4):
    said = " ".join(draw.choice(WORDS) for _ in range(draw.randrange(least, most)))
    if draw.random() < odd:
        said = draw.choice(["{} {}", "{1} {0}"]).format(said, draw.choice(ODD))
    return said


def json_lines(name, rows):
    with (FILES / name).open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def parquet(name, rows):
    pq.write_table(pa.Table.from_pylist(rows), FILES / name, compression="snappy")


def comma_separated(name, rows, header=True):
    with (FILES / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        if header:
            writer.writerow(rows[0])
        writer.writerows(row.values() for row in rows)


# --- the harness -----------------------------------------------------------------------------------------------------


def harness(task_path, splits, shots, change=None):
    """A task of the harness with these rows in the place of its dataset."""
    # The functions of ifeval judge answers, and their module downloads.
    config = load_yaml(TASKS / task_path, resolve_func="ifeval" not in task_path)
    if "ifeval" in task_path:
        config = {key: value for key, value in config.items() if key not in ("process_results", "metric_list")}
    for split in ["test_split", "validation_split", "training_split"]:
        if config.get(split) and config[split] not in splits:
            config[split] = None
    config.update(change or {})
    config["num_fewshot"] = shots
    config.pop("metadata", None)
    made = datasets.DatasetDict({split: datasets.Dataset.from_list(rows) for split, rows in splits.items()})
    # On disk like a download, so that a task's changes of its rows, such as the order of choices, are made once and
    # read again from then on.
    folder = tempfile.mkdtemp(dir=TEMPORARY.name)
    made.save_to_disk(folder)
    loaded = datasets.load_from_disk(folder)
    config["custom_dataset"] = lambda **_: loaded
    # As `simple_evaluate` does with its defaults.
    random.seed(0)
    task = ConfigurableTask(config=config)
    task.set_fewshot_seed(1234)
    return task


def asked(make, form, limit=None):
    """What a task asks in one form; `make` makes it anew, as the examples depend on what was drawn before."""
    task = make()

    def template(messages, add_generation_prompt=True):
        return json.dumps({"messages": messages, "continued": not add_generation_prompt})

    task.build_all_requests(
        limit=limit,
        apply_chat_template=form != "text",
        fewshot_as_multiturn=form == "turns",
        chat_template=template if form != "text" else None,
    )
    found = []
    for instance in task.instances:
        context, settings = instance.args
        prompt = {"text": context} if form == "text" else json.loads(context)
        prompt["stop"] = settings["until"]
        # The default of the harness' models.
        prompt["output-tokens"] = settings.get("max_gen_toks", 256)
        target = task.doc_to_target(instance.doc)
        prompt["target"] = target if isinstance(target, (str, list)) else str(target)
        found.append(prompt)
    return found


def golden(name, reference, config, files, make, limit=None, forms=("text", "turns", "message")):
    """Writes the golden file of one configuration: what is asked in each form, one request a line."""
    path = HERE / f"{name}.jsonl"
    lines = [{"made-by": "plugins/datasets/qa/goldens/make.py", "reference": reference, "config": config, "files": files}]
    for form in forms:
        lines += [{"form": form, **prompt} for prompt in asked(make, form, limit)]
    assert len(lines) > 3, name
    with path.open("w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
    print(f"{path.name}: {len(lines) - 1} prompts, {path.stat().st_size} bytes")


def lm_eval(task):
    return f"lm-eval {version('lm-eval')}, task {task}"


def gsm8k():
    def row():
        number = draw.randrange(10**5)
        return {"question": text(), "answer": f"{text(odd=0)} is <<{number}-1={number - 1}>>{number - 1}.\n#### {number:,}"}

    test, train = [row() for _ in range(6)], [row() for _ in range(30)]
    json_lines("gsm8k_test.jsonl", test)
    json_lines("gsm8k_train.jsonl", train)
    parquet("gsm8k_train.parquet", train)
    splits = {"test": test, "train": train}
    files = {"data": "gsm8k_test.jsonl", "examples": "gsm8k_train.jsonl"}
    golden("gsm8k", lm_eval("gsm8k"), {"task": "gsm8k"}, files, lambda: harness("gsm8k/gsm8k.yaml", splits, 5))
    golden(
        "gsm8k-of-parquet", lm_eval("gsm8k"), {"task": "gsm8k", "shots": 8}, {**files, "examples": "gsm8k_train.parquet"},
        lambda: harness("gsm8k/gsm8k.yaml", splits, 8), limit=3, forms=["text"],
    )
    golden(
        "gsm8k-cot-zeroshot", lm_eval("gsm8k_cot_zeroshot"), {"task": "gsm8k-cot-zeroshot"}, {"data": "gsm8k_test.jsonl"},
        lambda: harness("gsm8k/gsm8k-cot-zeroshot.yaml", splits, 0),
    )
    samples = [{"question": row["question"], "target": f"{text(odd=0)}. The answer is {draw.randrange(99)}."} for row in train[:10]]
    json_lines("gsm8k_cot.jsonl", samples)
    files = {"data": "gsm8k_test.jsonl", "examples": "gsm8k_cot.jsonl"}
    for task in ["gsm8k-cot", "gsm8k-cot-llama"]:
        change = {"fewshot_config": {"sampler": "first_n", "samples": samples}, "training_split": None}
        golden(
            task, lm_eval(task.replace("-", "_")) + ", with other examples", {"task": task}, files,
            lambda: harness(f"gsm8k/{task}.yaml", {"test": test}, 8, change),
        )


def mmlu():
    subjects = sorted(path.stem.removeprefix("mmlu_") for path in (TASKS / "mmlu/generative").glob("mmlu_*.yaml"))
    assert len(subjects) == 57

    def row(subject):
        return {"question": text(), "subject": subject, "choices": [text(1, 4) for _ in range(4)], "answer": draw.randrange(4)}

    test = [row(subject) for subject in subjects]
    dev = [row(subject) for subject in subjects for _ in range(5)]
    parquet("mmlu_test.parquet", test)
    parquet("mmlu_dev.parquet", dev)
    files = {"data": "mmlu_test.parquet", "examples": "mmlu_dev.parquet"}

    class All:
        """One task after the other."""

        def __init__(self, folder, split, shots):
            self.folder, self.split, self.shots = folder, split, shots

        def build_all_requests(self, **options):
            self.instances = []
            for subject in subjects:
                of = lambda rows: [row for row in rows if row["subject"] == subject]
                task = harness(f"mmlu/{self.folder}/mmlu_{subject}.yaml", {self.split: of(test), "dev": of(dev)}, self.shots)
                task.build_all_requests(**options)
                self.instances += task.instances
                self.doc_to_target = task.doc_to_target

    golden("mmlu", lm_eval("mmlu_*_generative"), {"task": "mmlu", "shots": 2}, files, lambda: All("generative", "test", 2), forms=["text"])
    one = {"task": "mmlu", "shots": 5, "subjects": ["anatomy", "virology"]}
    few = [subjects.index(subject) for subject in one["subjects"]]
    subjects = [subjects[index] for index in few]
    golden("mmlu-of-subjects", lm_eval("mmlu_*_generative"), one, files, lambda: All("generative", "test", 5))
    cot = {"task": "mmlu-cot-zeroshot", "subjects": one["subjects"]}
    golden("mmlu-cot-zeroshot", lm_eval("mmlu_*_flan_cot_zeroshot"), cot, {"data": files["data"]}, lambda: All("flan_cot_zeroshot", "validation", 0))
    # As the authors publish them: a file of each subject, without names of columns.
    flat = lambda row: {"question": row["question"], **dict(zip("abcd", row["choices"])), "answer": "ABCD"[row["answer"]]}
    subject = "high_school_us_history"
    test, dev = [row(subject) for _ in range(4)], [row(subject) for _ in range(5)]
    comma_separated("high_school_us_history_test.csv", [flat(row) for row in test], header=False)
    comma_separated("high_school_us_history_dev.csv", [flat(row) for row in dev], header=False)
    golden(
        "mmlu-of-csv", lm_eval("mmlu_*_generative"), {"task": "mmlu", "shots": 5, "subjects": [subject]},
        {"data": "high_school_us_history_test.csv", "examples": "high_school_us_history_dev.csv"},
        lambda: harness(f"mmlu/generative/mmlu_{subject}.yaml", {"test": test, "dev": dev}, 5),
    )


def mmlu_pro():
    categories = ["computer science", "law"]

    def row(number, category):
        options = [text(1, 4) for _ in range(draw.randrange(3, 11))]
        right = draw.randrange(len(options))
        cot = draw.choice(["A: Let's think step by step. ", "A: Let's think step by step. ", ""])
        return {
            "question_id": number, "question": text(), "options": options, "answer": "ABCDEFGHIJ"[right], "answer_index": right,
            "cot_content": f"{cot}{text()} The answer is ({'ABCDEFGHIJ'[right]}).", "category": category, "src": "made",
        }

    test = [row(100 + number, categories[number % 2]) for number in range(6)]
    validation = [row(number, categories[number // 5]) for number in range(10)]
    parquet("mmlu_pro_test.parquet", test)
    parquet("mmlu_pro_validation.parquet", validation)
    splits = {"test": test, "validation": validation}
    for category in categories:
        golden(
            f"mmlu-pro-{category.replace(' ', '-')}", lm_eval(f"mmlu_pro_{category.replace(' ', '_')}"),
            {"task": "mmlu-pro", "subjects": [category]}, {"data": "mmlu_pro_test.parquet", "examples": "mmlu_pro_validation.parquet"},
            lambda: harness(f"mmlu_pro/mmlu_pro_{category.replace(' ', '_')}.yaml", splits, 5),
        )


def gpqa():
    def row(number):
        made = {
            "Pre-Revision Question": text(), "Question": f"{text()}\n{text()}", "Correct Answer": text(1, 4),
            "Incorrect Answer 1": text(1, 4), "Incorrect Answer 2": text(1, 4) + "\n", "Incorrect Answer 3": text(1, 4),
            "Explanation": text(), "Record ID": f"rec{number:03}", "Subdomain": draw.choice(["Optics", "Genetics"]),
            "High-level domain": draw.choice(["Physics", "Biology"]),
        }
        return made

    rows = [row(number) for number in range(12)]
    comma_separated("gpqa_main.csv", rows)
    for task, folder, shots in [("gpqa", "generative", 3), ("gpqa-cot-zeroshot", "cot_zeroshot", 0), ("gpqa-cot", "cot_n_shot", 2)]:
        setting = "generative_n_shot" if folder == "generative" else folder
        config = {"task": task, "shots": shots} if shots else {"task": task}
        golden(
            task, lm_eval(f"gpqa_main_{setting}"), config, {"data": "gpqa_main.csv"},
            lambda: harness(f"gpqa/{folder}/gpqa_main_{setting}.yaml", {"train": rows}, shots),
        )


def arc():
    def row(number):
        count = draw.choice([3, 4, 4, 4, 5])
        label = draw.choice(["ABCDE", "12345"])[:count]
        return {
            "id": f"made_{number}", "question": text(),
            "choices": {"text": [text(1, 4) for _ in label], "label": list(label)}, "answerKey": draw.choice(label[:4]),
        }

    test, train = [row(number) for number in range(10)], [row(100 + number) for number in range(25)]
    parquet("arc_test.parquet", test)
    parquet("arc_train.parquet", train)

    def as_published(row):
        choices = [{"text": text, "label": label} for text, label in zip(row["choices"]["text"], row["choices"]["label"])]
        return {"id": row["id"], "question": {"stem": row["question"], "choices": choices}, "answerKey": row["answerKey"]}

    json_lines("ARC-Challenge-Test.jsonl", map(as_published, test))
    splits = {"test": test, "train": train}
    golden(
        "arc", lm_eval("arc_challenge_chat"), {"task": "arc"}, {"data": "ARC-Challenge-Test.jsonl"},
        lambda: harness("arc/arc_challenge_chat.yaml", splits, 0),
    )
    golden(
        "arc-with-shots", lm_eval("arc_challenge_chat"), {"task": "arc", "shots": 2}, {"data": "arc_test.parquet", "examples": "arc_train.parquet"},
        lambda: harness("arc/arc_challenge_chat.yaml", splits, 2), limit=4,
    )


def humaneval():
    def row(number):
        name = f"count_{number}"
        prompt = f'\n\ndef {name}(lamps: list) -> int:\n    """ {text()}\n    >>> {name}([])\n    0\n    """\n'
        return {
            "task_id": f"HumanEval/{number}", "prompt": prompt, "entry_point": name, "canonical_solution": "    return len(lamps)\n",
            "test": f"def check(candidate):\n    assert candidate([{number}]) == 1\n",
        }

    rows = [row(number) for number in range(4)]
    with (FILES / "HumanEval.jsonl.gz").open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
        for row in rows:
            packed.write((json.dumps(row) + "\n").encode())
    for task in ["humaneval", "humaneval-instruct"]:
        golden(
            task, lm_eval(task.replace("-", "_")), {"task": task}, {"data": "HumanEval.jsonl.gz"},
            lambda: harness(f"humaneval/{task.replace('-', '_')}.yaml", {"test": rows}, 0),
        )


def mbpp():
    def row(number):
        name = f"sum_{number}"
        return {
            "task_id": number, "text": text(), "code": f"def {name}(a):\r\n  return sum(a) ",
            "test_list": [f"assert {name}([{item}]) == {item}" for item in range(3)],
            "test_setup_code": draw.choice(["", "import math"]), "challenge_test_list": [],
        }

    rows = [row(number) for number in range(1, 15)]
    json_lines("mbpp.jsonl", rows)
    # The test split of the full file.
    test = [row for row in rows if 11 <= row["task_id"] <= 510]
    # The harness has the rows 2, 3 and 4 of the dataset as examples.
    samples = [{**row, "is_fewshot": True} for row in rows if row["task_id"] in (2, 3, 4)]
    change = {"fewshot_config": {"sampler": "first_n", "samples": samples}}
    for task, shots in [("mbpp", None), ("mbpp-instruct", None), ("mbpp", 1)]:
        golden(
            f"{task}-{shots}" if shots else task, lm_eval(task.replace("-", "_")), {"task": task, **({"shots": shots} if shots else {})},
            {"data": "mbpp.jsonl"}, lambda: harness(f"mbpp/{task.replace('-', '_')}.yaml", {"test": test}, shots or 3, change),
        )


def ifeval():
    def row(number):
        return {
            "key": 1000 + number, "prompt": text(), "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_words"],
            "kwargs": [{}, {"relation": "at least", "num_words": 10 * number}],
        }

    rows = [row(number) for number in range(4)]
    json_lines("ifeval_input_data.jsonl", rows)
    of_set = [{**row, "kwargs": json.dumps(row["kwargs"])} for row in rows]
    golden("ifeval", lm_eval("ifeval"), {"task": "ifeval"}, {"data": "ifeval_input_data.jsonl"}, lambda: harness("ifeval/ifeval.yaml", {"train": of_set}, 0))


def longbench():
    names = sorted(path.stem for path in (TASKS / "longbench").glob("[!_]*.yaml"))
    names = [name for name in names if not name.endswith("_e")]
    assert len(names) == 21
    for name in names:
        config = load_yaml(TASKS / f"longbench/{name}.yaml")
        config_e = TASKS / f"longbench/{name}_e.yaml"
        if config_e.exists():
            config_e = load_yaml(config_e)
            same = ["doc_to_text", "generation_kwargs", "target_delimiter"]
            assert all(config.get(key) == config_e.get(key) for key in same), name

    def row(number, name):
        return {
            "input": text(), "context": "\n\n".join(text() for _ in range(3)), "answers": [text(1, 3) for _ in range(draw.randrange(1, 3))],
            "length": 12, "dataset": name, "language": "zh" if name.endswith("zh") else "en",
            "all_classes": ["one", "two"] if name in ("trec", "lsht") else None, "_id": f"{number:08x}",
        }

    rows = [row(number, name) for number, name in enumerate(names)]
    json_lines("longbench.jsonl", rows)

    class All:
        def build_all_requests(self, **options):
            self.instances = []
            for name, row in zip(names, rows):
                # The mirror that the harness reads calls the column so.
                of_set = [{"question": row["input"], **row}]
                task = harness(f"longbench/{name}.yaml", {"test": of_set}, 0)
                task.build_all_requests(**options)
                self.instances += task.instances
            self.doc_to_target = lambda doc: doc["answers"]

    golden("longbench", lm_eval("longbench_*"), {"task": "longbench"}, {"data": "longbench.jsonl"}, All)


def bfcl():
    from bfcl_eval.constants.enums import ModelStyle
    from bfcl_eval.constants.type_mappings import GORILLA_TO_OPENAPI
    from bfcl_eval.model_handler.utils import convert_to_tool
    from bfcl_eval.utils import add_language_specific_hint_to_function_doc

    def value(depth=0):
        kind = draw.choice(["integer", "float", "string", "boolean", "any", "array", "tuple", "dict", "bool", "double"])
        made = {"type": kind, "description": text()}
        if kind in ("array", "tuple"):
            made["items"] = {"type": draw.choice(["string", "float", "dict", "array"])}
            if made["items"]["type"] == "dict":
                made["items"]["properties"] = {"part": {"type": "float", "description": "A part."}, "of": {"description": "None."}}
            if made["items"]["type"] == "array":
                made["items"]["items"] = {"type": "tuple"}
        if kind == "dict" and depth < 2:
            made["properties"] = {f"key{index}": value(depth + 1) for index in range(draw.randrange(3))}
        if draw.random() < 0.3:
            made["default"] = 2.5
        return made

    def function(name):
        properties = {f"given{index}": value() for index in range(draw.randrange(1, 5))}
        return {"name": name, "description": text(), "parameters": {"type": "dict", "properties": properties, "required": list(properties)[:1]}}

    categories = ["simple_python", "multiple", "parallel", "irrelevance", "live_relevance", "live_simple", "simple_java", "simple_javascript"]
    rows, answers = [], []
    for number, category in enumerate(categories * 2):
        index = number // len(categories)
        row_id = f"{category}_{index}" + (f"-{index}-0" if category.startswith("live") else "")
        messages = [{"role": "user", "content": text()}]
        if draw.random() < 0.3:
            messages.insert(0, {"role": "system", "content": text()})
        functions = [function(draw.choice(["lamps.count", "carry", "boat.of.lamps"])) for _ in range(draw.randrange(1, 3))]
        if category.startswith("simple_java"):
            functions = [{"name": "carry", "description": text(), "parameters": {"type": "dict", "properties": {
                "many": {"type": "Array", "description": "Many.", "items": {"type": "String"}} if category == "simple_java" else {"type": "array", "description": "Many.", "items": {"type": "String"}},
                "one": {"type": "any", "description": "One."}, "two": {"type": "integer", "description": "Two."}}, "required": ["one"]}}]
        rows.append({"id": row_id, "question": [messages], "function": functions})
        if "relevance" not in category:
            answers.append({"id": row_id, "ground_truth": [{functions[0]["name"]: {"given0": [1, ""]}}]})
    json_lines("BFCL_v4.json", rows)
    json_lines("BFCL_v4_answers.json", answers)
    lines = [{
        "made-by": "plugins/datasets/qa/goldens/make.py", "reference": f"bfcl-eval {version('bfcl-eval')}, OpenAI's models with function calling",
        "config": {"task": "bfcl"}, "files": {"data": "BFCL_v4.json", "answers": "BFCL_v4_answers.json"},
    }]
    for row in add_language_specific_hint_to_function_doc(json.loads(json.dumps(rows))):
        tools = convert_to_tool(row["function"], GORILLA_TO_OPENAPI, ModelStyle.OPENAI_COMPLETIONS)
        lines.append({"form": "turns", "messages": row["question"][0], "tools": tools})
    path = HERE / "bfcl.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
    print(f"{path.name}: {len(lines) - 1} prompts, {path.stat().st_size} bytes")


if __name__ == "__main__":
    FILES.mkdir(exist_ok=True)
    for make in [gsm8k, mmlu, mmlu_pro, gpqa, arc, humaneval, mbpp, ifeval, longbench, bfcl]:
        if len(sys.argv) < 2 or make.__name__ in sys.argv[1:]:
            # Of its own, so that one can be made without the others.
            draw.seed(f"{SEED} {make.__name__}")
            make()
