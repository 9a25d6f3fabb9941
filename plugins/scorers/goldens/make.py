"""Writes `golden.jsonl` of each scorer: 500 answers, and the scores that a reference implementation gives them.

    python3 -m venv venv
    venv/bin/pip install rouge-score==0.1.2 sacrebleu==2.6.0 jsonschema==4.26.0 nltk==3.10.4 packaging jiwer==4.0.0
    venv/bin/pip install --no-deps lm-eval==0.4.13 bfcl-eval==2026.3.23
    PYTHONPATH=endpoints/src venv/bin/python plugins/scorers/goldens/make.py

The answers are drawn from a fixed seed. The scores come from the packages' own functions; nothing of them is copied
here. Where a module imports packages that its function does not need, an empty module stands in for them, so that a
few megabytes are enough. `contains` is compared with Python itself.
"""

import contextlib
import importlib.util
import json
import os
import random
import re
import sys
import tempfile
import types
from importlib.metadata import version
from pathlib import Path

COUNT = 500
SCORERS = Path(__file__).resolve().parent.parent


def write(scorer, reference, seed, lines, right=None, **more):
    """Writes a golden file: a header, and one answer per line."""
    assert len(lines) == COUNT, (scorer, len(lines))
    if right is None:
        right = sum(
            any(score == 1 for name, score in line["scores"].items() if not name.endswith("-unparsed"))
            for line in lines
        )
    assert COUNT / 10 < right < COUNT * 9 / 10, f"{scorer}: {right} answers are right, which tests little"
    header = {"made-by": "plugins/scorers/goldens/make.py", "reference": reference, "seed": seed, "count": COUNT, **more}
    path = SCORERS / scorer / "golden.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for line in [header, *lines]:
            file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
    print(f"{path.relative_to(SCORERS)}: {path.stat().st_size} bytes, {right} right")


def line(number, reference, scores, config=None, **exchange):
    """One answer of a golden file."""
    made = {"config": config} if config else {}
    made["exchange"] = {"id": str(number), "reference": reference, **exchange}
    made["scores"] = {name: float(value) for name, value in scores.items()}
    return made


def imported(name, missing=()):
    """Imports a module while empty ones stand in for those that are missing."""

    class Anything(types.ModuleType):
        __path__ = []

        def __getattr__(self, key):
            if key.startswith("__"):
                raise AttributeError(key)
            return lambda *_, **__: None

    for other in missing:
        if other not in sys.modules:
            with contextlib.suppress(ImportError):
                importlib.import_module(other)
                continue
            sys.modules[other] = Anything(other)
    if not name.startswith("lm_eval.tasks."):
        return importlib.import_module(name)
    # The package of the tasks imports all there is for running them, so the module is read alone.
    path = importlib.util.find_spec("lm_eval").submodule_search_locations[0]
    path = Path(path).joinpath(*name.split(".")[1:]).with_suffix(".py")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# --- lm-evaluation-harness -------------------------------------------------------------------------------------------


def exact_match(found, reference, **options):
    metrics = imported("lm_eval.api.metrics")
    return metrics.exact_match_hf_evaluate(predictions=[found], references=[reference], **options)["exact_match"]


def final_number(seed):
    extraction = imported("lm_eval.filters.extraction")
    strict = extraction.RegexFilter(regex_pattern="#### (\\-?[0-9\\.\\,]+)")
    flexible = extraction.RegexFilter(regex_pattern="(-?[$0-9.,]{2,})|(-?[0-9]+)", group_select=-1)
    # As in the task's file.
    options = {"ignore_case": True, "ignore_punctuation": False, "regexes_to_ignore": [",", "\\$", "(?s).*#### ", "\\.$"]}
    draw = random.Random(seed)
    lines = []
    for number in range(COUNT):
        value = draw.choice([draw.randrange(10), draw.randrange(-50, 2000), draw.randrange(10**6)])
        shown = draw.choice([str(value), f"{value:,}", f"{value}.0", f"{value}.{draw.randrange(100):02}"])
        reference = draw.choice([f"So it is {value * 2}.\n#### {value:,}", f"#### {value + 1}\n#### {shown}.", f"#### {shown}", shown, f"${shown}"])
        said = shown if draw.random() < 0.7 else str(value + draw.randrange(1, 5))
        pieces = [
            f"First {draw.randrange(50)} + {draw.randrange(50)}.",
            f"That makes ${said}.",
            f"#### {said}",
            f"#### ${said}",
            f"####{said}",
            f"The answer is {said}",
            f"The answer is {said}.\n",
            f"between -{draw.randrange(9)} and --{draw.randrange(9)}",
            "nothing - at all...",
            f"-${said}",
            f"{said}$",
            "ein Preis von 5 €, é",
            "#### none",
            f"#### -{said}, or",
            "$ . ,",
        ]
        output = draw.choice([" ", "\n", ""]).join(draw.sample(pieces, draw.randrange(0, 5)))
        if draw.random() < 0.3:
            output += f"\n#### {said}"
        scores = {}
        for name, rule in [("strict", strict), ("flexible", flexible)]:
            [[found]] = rule.apply([[output]], [{}])
            scores[f"final-number-{name}"] = exact_match(found, reference, **options)
            scores[f"final-number-{name}-unparsed"] = found == "[invalid]"
        lines.append(line(number, reference, scores, output=output))
    write("final-number", f"lm-eval {version('lm-eval')}, task gsm8k", seed, lines)


def multiple_choice(seed):
    extraction = imported("lm_eval.filters.extraction")
    regex, choice = extraction.RegexFilter, extraction.MultiChoiceRegexFilter
    cot = (
        "((?<=The answer is )(.*)(?=.)|(?<=answer is )(.*)(?=.)|(?<=The answer: )(.*)(?=.)|"
        "(?<=The final answer: )(.*)(?=.))"
    )
    rules = {
        "mmlu-pro": [regex(regex_pattern=r"answer is \(?([ABCDEFGHIJ])\)?")],
        "mmlu": [regex(regex_pattern="^(.*?)(?=\\n|$)"), extraction.WhitespaceFilter(), regex(regex_pattern="^(.*?)\\s*$")],
        "mmlu-strict": [regex(regex_pattern=cot)],
        "gpqa-strict": [regex(regex_pattern="(?<=The answer is )(.*)(?=.)")],
        "flexible": [
            choice(regex_pattern="(\\([A-Z]\\))", group_select=-1, ignore_case=True, ignore_punctuation=True)
        ],
        "arc": [extraction.WhitespaceFilter()],
    }
    texts = ["Rome", "Rome, Italy", "the 3rd", "An eye (left)", "x + y", "—", "Öl!", "seven", "no", "none of these", "oil"]
    draw = random.Random(seed)
    lines = []
    for number in range(COUNT):
        name = list(rules)[number % len(rules)]
        letters = "ABCDEFGHIJ" if name == "mmlu-pro" else "ABCD"
        right = draw.choice(letters)
        said = right if draw.random() < 0.8 else draw.choice("ABCDEFGHIJKZ")
        choices = draw.sample(texts, len(letters)) if len(letters) <= len(texts) else []
        quoted = draw.choice(choices)
        pieces = [
            f"The answer is ({said}).",
            f"the answer is {said}",
            f"So the answer is {said.lower()}.",
            f"The answer: ({said})\n",
            f"The final answer: {said}!",
            "The answer is \n",
            "The answer is .",
            f"It is ({said}), not ({draw.choice(letters)})",
            f"Answer:\n {said}",
            f"I say: {said}",
            f"I would say {quoted.upper()}!",
            f"perhaps {quoted}.",
            "Let me think",
            f"\n{said}.\n",
        ]
        count = draw.randrange(0, 4)
        alone = [f"{said}", f" {said}.", f"({said})", f"{said}\n\nbecause", f"**{said}**"]
        whole = name in ("mmlu", "arc") and draw.random() < 0.7
        if name == "flexible" and draw.random() < 0.5:
            # A choice that begins like another, and nothing that comes before it.
            choices[:2] = ["Rome", "Rome, Italy"]
            pieces, count = [f"perhaps {draw.choice(choices)}", f"or {quoted}?", "Let me think"], 2
        output = draw.choice(alone) if whole else draw.choice([" ", "\n", ""]).join(draw.sample(pieces, count))
        found = [output]
        for rule in rules[name]:
            [found] = rule.apply([found], [{"choices": choices}])
        target = draw.choice([right, f"({right})"])
        options = {"ignore_case": True, "ignore_punctuation": True}
        scores = {"multiple-choice": exact_match(found[0], target, **options)}
        reference = {"answer": target, "choices": choices} if name == "flexible" else target
        lines.append(line(number, reference, scores, {"extraction": name}, output=output))
    write("multiple-choice", f"lm-eval {version('lm-eval')}, tasks mmlu_pro, mmlu, gpqa, arc", seed, lines)


def needle(seed):
    ruler = imported(
        "lm_eval.tasks.ruler.common_utils", ["transformers", "datasets", "wonderwords", "nltk", "tqdm", "bs4", "html2text"]
    )
    draw = random.Random(seed)
    words = ["alpha", "Beta", "7391", "4802", "Ünder", "long-lamp", "the", "magic", "number", "\x07", "\n", "İ"]
    lines = []
    for number in range(COUNT):
        needles = [
            draw.choice([str(draw.randrange(1000)), draw.choice(words[:6]), f"{draw.choice(words[:6])} {draw.choice(words)}"])
            for _ in range(draw.randrange(1, 5))
        ]
        needles = [needle for needle in needles if needle.strip()] or ["7"]
        said = [draw.choice([needle, needle.upper(), needle.lower(), needle.replace(" ", "\x01")]) for needle in needles if draw.random() < 0.6]
        said += draw.choices(words, k=draw.randrange(6))
        draw.shuffle(said)
        output = draw.choice([" ", ", ", "\n", ""]).join(said)
        score = ruler.string_match_all(ruler.postprocess_pred([output]), [needles])
        scores = {"needle": score, "needle-all": score == 1.0}
        lines.append(line(number, needles, scores, output=output))
    write("needle", f"lm-eval {version('lm-eval')}, tasks ruler, string_match_all", seed, lines)


def ifeval(seed):
    # The model for sentences is not looked for: what needs it is not judged.
    os.environ["LOCAL_RANK"] = "1"
    imported("langdetect", ["langdetect", "immutabledict"])
    sys.modules["immutabledict"].immutabledict = dict

    class Undecided(Exception):
        """What a language is, nobody says here."""

    def detect(_text):
        raise Undecided

    sys.modules["langdetect"].detect = detect
    sys.modules["langdetect"].LangDetectException = ZeroDivisionError
    # The package of the tasks imports all there is for running them; its folder is enough.
    package = types.ModuleType("lm_eval.tasks")
    package.__path__ = [str(Path(importlib.util.find_spec("lm_eval").submodule_search_locations[0]) / "tasks")]
    sys.modules["lm_eval.tasks"] = package
    utils = importlib.import_module("lm_eval.tasks.ifeval.utils")

    draw = random.Random(seed)
    relation = lambda: draw.choice(["at least", "less than"])
    few = lambda: draw.randrange(1, 4)
    words = ["cat", "Übung", "mat", "the", "naïve", "STRASSE", "e-mail", "न\u093f", "U.S", "x_y", "c.t", "mats?", "ſ"]
    prompts = ["Say A.", " Write\n\nit. "]
    kinds = {
        "keywords:existence": lambda: {"keywords": draw.sample(words, draw.randrange(1, 3))},
        "keywords:frequency": lambda: {"keyword": draw.choice([draw.choice(words), " cat "]), "frequency": few(), "relation": relation()},
        "keywords:forbidden_words": lambda: {"forbidden_words": draw.sample(words, draw.randrange(1, 3))},
        "keywords:letter_frequency": lambda: {"letter": draw.choice("aAtTes"), "let_frequency": few() * 2, "let_relation": relation()},
        "length_constraints:number_paragraphs": lambda: {"num_paragraphs": few()},
        "length_constraints:number_words": lambda: {"num_words": draw.randrange(1, 20), "relation": relation()},
        "length_constraints:nth_paragraph_first_word": lambda: {
            "num_paragraphs": (paragraphs := few()),
            "nth_paragraph": draw.randrange(1, paragraphs + 1),
            "first_word": draw.choice(["The", "cat", "sure", "Übung"]),
        },
        "detectable_content:number_placeholders": lambda: {"num_placeholders": few()},
        "detectable_content:postscript": lambda: {"postscript_marker": draw.choice(["P.S.", "P.P.S", "Note:"])},
        "detectable_format:number_bullet_lists": lambda: {"num_bullets": few()},
        "detectable_format:constrained_response": dict,
        "detectable_format:number_highlighted_sections": lambda: {"num_highlights": few()},
        "detectable_format:multiple_sections": lambda: {
            "section_spliter": draw.choice(["Section", "PART", "Day ", "S.ction"]),
            "num_sections": few(),
        },
        "detectable_format:json_format": dict,
        "detectable_format:title": dict,
        "combination:two_responses": dict,
        "combination:repeat_prompt": lambda: {"prompt_to_repeat": draw.choice(prompts)},
        "startend:end_checker": lambda: {"end_phrase": draw.choice(["Any questions?", " the end. "])},
        "startend:quotation": dict,
        "change_case:english_capital": dict,
        "change_case:english_lowercase": dict,
        "punctuation:no_comma": dict,
    }
    # What an answer that follows an instruction may be made of.
    made_for = {
        "keywords": ["cat", "Cat,", "ÜBUNG", "mats", "the the", "naÏve", "straße", "E-Mail", "न\u093f", "u.s", "x_y", "cAt", "ſ", "s"],
        "number_paragraphs": ["***", " *** ", "\n***\n", "***", "a", "\u3000"],
        "nth_paragraph": ["\n\n", "\n\n", "\n\n\n", "'\"The", "the,", "Cat's", "sure", "\n \n", "Übung!"],
        "placeholders": ["[a]", "[b c]", "[", "]", "[]", "[\n]", "[[x]"],
        "postscript": ["P.S. x", "p. s.", "p.p.s", "P. P. S", "\nP.P.S.", "note: x", "P.\nS."],
        "bullet": ["\n* a", "\n  * b", "\n- c", "\n** d", "\n*\n", "* ", "\n\t-", "\n\n", "-"],
        "constrained": ["My answer is yes.", "My answer is no", "My answer is maybe.", "my answer is no."],
        "highlighted": ["*a*", "**b**", "* *", "****", "*a\nb*", "***c***", "*", "**"],
        "multiple_sections": ["Section 1", "SECTION 2", "PART ٣", "PART7", "Day 1", "Section\n4", "Section  5", "Sction 6", "Section"],
        "json_format": ["{}", '{"a": [1, NaN]}', "```json\n", "```", "\n```", "[1,]", "1e999", '"\\ud83d"', "01", "```JSON"],
        "title": ["<<A>>", "<<>>", "<< >>", "<<<x>>>", "<<a\n>>", "<<", ">>", "<<<>>>"],
        "two_responses": ["******", "\n******\n", "a", "b", "******", " a "],
        "repeat_prompt": ["say a.", "Say A. Yes.", " Write\n\nit.", "\n", "write it."],
        "end_checker": ["Any Questions?", 'the end."', "THE END.", "the end", "\n"],
        "quotation": ['"', '"', '"a"', "a"],
        "english_capital": ["Yes", "no", "NO", "1"],
        "english_lowercase": ["Yes", "NO", "no", "1"],
    }
    def answered(number, first):
        ids = [first] + draw.sample([one for one in kinds if one != first], draw.choice([0, 0, 0, 1, 2]))
        pieces = draw.choices(WORDS, k=draw.randrange(6))
        for name, parts in made_for.items():
            if any(name in one for one in ids):
                pieces += draw.choices(parts, k=draw.randrange(1, 6))
        draw.shuffle(pieces)
        output = draw.choice([" ", "", "\n", ""]).join(pieces)
        # Lines that only the loose variants leave out, and an answer that is only a piece.
        output = draw.choice([output, output, output, "Sure, *here*:\n" + output, output + "\nDone, [x]?", draw.choice(pieces or [""])])
        row = {"key": number, "prompt": draw.choice(prompts), "instruction_id_list": ids, "kwargs": [kinds[one]() for one in ids]}
        found = utils.process_results(row, [output])
        return row, output, found["prompt_level_strict_acc"], found["prompt_level_loose_acc"]

    lines = []
    for number in range(COUNT):
        # Each instruction as often as the others, followed, followed loosely, and broken; as far as chance finds such answers.
        wanted = [(True, True), (False, True), (False, False), (True, True)][number // len(kinds) % 4]
        kept = None
        for _ in range(400):
            try:
                made = answered(number, list(kinds)[number % len(kinds)])
            except Undecided:
                continue
            kept = kept or made
            if made[2:] == wanted:
                kept = made
                break
        row, output, strict, loose = kept
        scores = {"prompt-level-strict": strict, "prompt-level-loose": loose, "ifeval-unjudged": False}
        lines.append(line(number, row, scores, output=output))
    write("ifeval", f"lm-eval {version('lm-eval')}, task ifeval", seed, lines)


# --- texts -----------------------------------------------------------------------------------------------------------

WORDS = (
    "the a an cat cat's cats sat on mat, mat. The theme is 42 3.14 naïve Éclair don't co-operate über STRASSE straße "
    "你好 世界 привет — “quoted” U.S. e-mail x_y (again) again and and or of end."
).split()


def sentence(draw, longest):
    return draw.choice([" ", " ", " ", "  ", "\n"]).join(draw.choices(WORDS, k=draw.randrange(longest)))


def changed(draw, text):
    """A text like another: words left out, put in, and exchanged."""
    words = text.split()
    for _ in range(draw.randrange(1, 6)):
        at = draw.randrange(len(words) + 1)
        words[at : at + draw.randrange(3)] = draw.choices(WORDS, k=draw.randrange(2))
    return draw.choice([" ", " ", "\t"]).join(words)


def overlap(seed):
    rouge = imported("rouge_score.rouge_scorer").RougeScorer(["rougeL"], use_stemmer=False)
    chrf = imported("sacrebleu.metrics.chrf").CHRF()
    squad = imported("lm_eval.tasks.longbench.metrics", ["jieba", "fuzzywuzzy", "fuzzywuzzy.fuzz", "rouge"])
    draw = random.Random(seed)
    lines = []
    for number in range(COUNT):
        references = [sentence(draw, 14) or "x" for _ in range(draw.choice([1, 1, 1, 2, 3]))]
        if draw.random() < 0.2:
            references = [" ".join(references[0].split()[:2])]
        output = draw.choice([sentence(draw, 14), changed(draw, references[0]), changed(draw, references[-1]), references[0].upper()])
        normal = [squad.normalize_answer(text) for text in [output, *references]]
        scores = {
            "rouge-l": rouge.score_multi(references, output)["rougeL"].fmeasure,
            "chrf": chrf.sentence_score(output, references).score,
            "squad-exact": normal[0] in normal[1:],
            "squad-f1": max(squad.qa_f1_score(output, reference) for reference in references),
        }
        reference = references[0] if len(references) == 1 else references
        lines.append(line(number, reference, scores, output=output))
    name = f"rouge-score {version('rouge-score')}, sacrebleu {version('sacrebleu')}, lm-eval {version('lm-eval')} longbench"
    write("overlap", name, seed, lines)


def contains(seed):
    patterns = [
        r"\bcat\b", r"[0-9]+\.[0-9]{2}", "^The", r"end\.?$", "c(a|o)t.*mat", r"\d{2,}", "(?i)STRA", r"a{2}|an\s+\w", "你.", "^$",
        r"x_y|e-mail", r"(?m)^cat", "[^a-z ]{4,}", r"\(again\)",
    ]
    draw = random.Random(seed)
    lines = []
    for number in range(COUNT):
        output = draw.choice(["", "", " ", "\n", "\x1c"]) + sentence(draw, 10)
        mode = ["contains", "prefix", "regex"][number % 3]
        fold = draw.random() < 0.4
        config = {"mode": mode} | ({"ignore-case": True} if fold else {})
        if mode == "regex":
            # Case is folded for ASCII alone, and so are the classes.
            reference = draw.choice(patterns)
            flags = re.ASCII | (re.IGNORECASE if fold else 0)
            # White space at the end is not the end, in these patterns and in Rust's.
            if reference.endswith("$"):
                output = output.rstrip("\n")
            found = re.search(reference, output, flags) is not None
        else:
            words = output.split() or ["x"]
            start = 0 if mode == "prefix" and draw.random() < 0.7 else draw.randrange(len(words))
            reference = draw.choice([words[start], " ".join(words[start : start + 2]), sentence(draw, 3) or "x"])
            reference = draw.choice([reference, reference, reference.upper(), reference.capitalize()])
            text, wanted = (output.lower(), reference.lower()) if fold else (output, reference)
            found = wanted in text if mode == "contains" else text.lstrip().startswith(wanted)
        lines.append(line(number, reference, {"contains": found}, config, output=output))
    write("contains", f"Python {sys.version.split()[0]}, `in`, str.startswith and re.search", seed, lines)


# --- JSON ------------------------------------------------------------------------------------------------------------


def json_value(draw, depth=0):
    kinds = ["null", "bool", "int", "float", "text"] + (["list", "table", "table"] if depth < 2 else [])
    match draw.choice(kinds):
        case "null":
            return None
        case "bool":
            return draw.random() < 0.5
        case "int":
            return draw.randrange(-3, 12)
        case "float":
            return draw.choice([0.5, 1.0, 2.5, -3.0, 1e3])
        case "text":
            return draw.choice(["", "a", "ab", "é", "2020-01-01", "x1", "null"])
        case "list":
            return [json_value(draw, depth + 1) for _ in range(draw.randrange(4))]
        case _:
            return {draw.choice("abcx"): json_value(draw, depth + 1) for _ in range(draw.randrange(4))}


def json_rule(draw, depth=0):
    """A schema of a few keywords."""
    below = (lambda: json_rule(draw, depth + 1)) if depth < 2 else (lambda: draw.random() < 0.7)
    names = ["null", "boolean", "integer", "number", "string", "array", "object"]
    keywords = {
        "type": lambda: draw.choice([draw.choice(names), draw.sample(names, 3)]),
        "enum": lambda: [json_value(draw, 1) for _ in range(4)],
        "const": lambda: json_value(draw, 1),
        "minimum": lambda: draw.randrange(5),
        "maximum": lambda: draw.choice([3, 5.5]),
        "exclusiveMinimum": lambda: draw.randrange(4),
        "exclusiveMaximum": lambda: 4.0,
        "multipleOf": lambda: draw.choice([2, 0.4, 1.5, 1.0, 3]),
        "minLength": lambda: 1,
        "maxLength": lambda: draw.randrange(3),
        "pattern": lambda: draw.choice(["^[a-z]+$", "[0-9]", "^.$"]),
        "items": below,
        "prefixItems": lambda: [below() for _ in range(2)],
        "contains": below,
        "minContains": lambda: draw.randrange(3),
        "maxContains": lambda: draw.randrange(1, 3),
        "minItems": lambda: draw.randrange(3),
        "maxItems": lambda: draw.randrange(1, 4),
        "uniqueItems": lambda: True,
        "properties": lambda: {name: below() for name in draw.sample("abc", 2)},
        "required": lambda: draw.sample("abcx", draw.randrange(1, 3)),
        "additionalProperties": below,
        "patternProperties": lambda: {draw.choice(["^a", "[bc]"]): below()},
        "propertyNames": lambda: {"enum": ["a", "b", "c"]},
        "minProperties": lambda: draw.randrange(3),
        "maxProperties": lambda: draw.randrange(1, 4),
        "dependentRequired": lambda: {"a": ["b"]},
        "dependentSchemas": lambda: {"a": below()},
        "allOf": lambda: [below(), below()],
        "anyOf": lambda: [below(), below()],
        "oneOf": lambda: [below(), below()],
        "not": below,
        "if": below,
        "then": below,
        "else": below,
        "$ref": lambda: "#/$defs/x",
        "format": lambda: "date",
    }
    chosen = draw.sample(list(keywords), draw.randrange(1, 4))
    if depth == 0 and draw.random() < 0.6:
        # Keywords of one kind together, with simple schemas below them.
        lists = ["items", "prefixItems", "contains", "minContains", "maxContains", "minItems", "uniqueItems"]
        tables = ["properties", "patternProperties", "additionalProperties", "required", "propertyNames", "dependentSchemas"]
        chosen = draw.sample(draw.choice([lists, tables]), draw.randrange(2, 4))
        below = lambda: draw.choice([{"type": draw.choice(names[1:5])}, {"minimum": 3}, {"maxLength": 1}])
    if draw.random() < 0.4:
        chosen.append("type")
    # What has an effect only beside others.
    pairs = {"items": "prefixItems", "minContains": "contains", "maxContains": "contains", "then": "if", "else": "if"}
    chosen += [pairs[keyword] for keyword in chosen if keyword in pairs and draw.random() < 0.7]
    return {keyword: keywords[keyword]() for keyword in chosen}


def json_schema(seed):
    validator = imported("jsonschema").Draft202012Validator
    draw = random.Random(seed)

    def load(text):
        def refuse(constant):
            raise ValueError(constant)

        return json.loads(text, parse_constant=refuse)

    lines = []
    wanted = 0
    while len(lines) < COUNT:
        schema = json_rule(draw)
        schema["$defs"] = {"x": json_rule(draw, 2) | {"$ref": True}}
        del schema["$defs"]["x"]["$ref"]
        value = json_value(draw)
        # Keywords of lists and tables say nothing of other values.
        if "ontains" in str(schema) or "tems" in str(schema):
            value = [json_value(draw, 1) for _ in range(draw.randrange(5))]
        elif "ropert" in str(schema) or "dependent" in str(schema):
            value = {name: json_value(draw, 1) for name in draw.sample("abcx", draw.randrange(5))}
        if len(json.dumps(schema)) > 300:
            continue
        text = json.dumps(value, ensure_ascii=draw.random() < 0.5)
        # As many right answers as wrong ones.
        if validator(schema).is_valid(value) != (wanted % 2 == 0):
            continue
        wanted += 1
        broken = draw.random() < 0.1
        if broken:
            text = draw.choice([text + "]", "'" + text, "NaN", "", "It is: " + text])
        fenced = draw.random() < 0.3
        output = f"Here:\n```json\n{text}\n```\nDone." if fenced else text
        try:
            valid = validator(schema).is_valid(load(text))
            unparsed = False
        except ValueError:
            valid, unparsed = False, True
        scores = {"json-schema": valid, "json-schema-unparsed": unparsed}
        lines.append(line(len(lines), schema, scores, output=output))
    write("json-schema", f"jsonschema {version('jsonschema')}, Draft202012Validator", seed, lines)


# --- tools -----------------------------------------------------------------------------------------------------------


def tool_call(seed):
    # The table of models says only whether names have underscores for dots, and brings every client library.
    models = types.ModuleType("bfcl_eval.constants.model_config")
    models.MODEL_CONFIG_MAPPING = {name: types.SimpleNamespace(underscore_to_dot=name == "dots") for name in ["dots", "plain"]}
    sys.modules[models.__name__] = models
    checker = imported("bfcl_eval.eval_checker.ast_eval.ast_checker")
    language = imported("bfcl_eval.constants.enums").Language.PYTHON
    draw = random.Random(seed)
    pools = {
        "string": ["New York", "rome", "April 1, 2024", "x_y", "it's", ""],
        "integer": [0, 1, 2, 7, -3],
        "float": [0.5, 1.0, 2.25, 7.0],
        "boolean": [True, False],
        "any": ["red", "Blue"],
    }
    odd = ["x", 1, 1.0, True, None, ["a"], {"k": 1}]

    def value(kind, items):
        if kind in ("array", "tuple"):
            return [value(items, None) for _ in range(draw.randrange(3))]
        if kind == "dict":
            return {key: value(draw.choice(list(pools)), None) for key in draw.sample("kmn", draw.randrange(3))}
        return draw.choice(pools[kind])

    def right(kind, items):
        """The values of an argument that are right."""
        def one():
            if kind == "dict":
                return {key: [value("string", None), value("integer", None)] + draw.choice([[], [""]]) for key in draw.sample("kmn", 2)}
            if kind == "array" and items == "dict":
                return [{"k": ["a", 1], "m": [True, ""]} for _ in range(draw.randrange(3))]
            return value(kind, items)
        values = [one() for _ in range(draw.randrange(1, 3))]
        if kind == "float" and draw.random() < 0.4:
            values = [2, 7]
        if kind == "string" and draw.random() < 0.2:
            values = [3, "New York"]
        elif draw.random() < 0.15:
            values = [draw.choice(["a_variable", 3])] if kind not in ("array", "tuple", "dict") else ["a_variable"]
        return values + draw.choice([[], [""]])

    def said(right, kind, items):
        """A value that a model may give: often one of the right ones, in another spelling."""
        chosen = draw.choice([value for value in right if value != ""] or [value(kind, items)])
        if draw.random() < 0.1:
            return draw.choice(odd)
        if draw.random() < 0.15:
            return value(kind, items)
        if kind == "dict" and isinstance(chosen, dict):
            return {key: draw.choice(values) for key, values in chosen.items() if values[0] != "" and draw.random() < 0.95}
        if kind == "array" and items == "dict" and isinstance(chosen, list):
            return [{key: draw.choice(values) for key, values in table.items()} for table in chosen]
        if isinstance(chosen, list) and draw.random() < 0.3:
            # Equal numbers of another type.
            return [float(item) if type(item) is int else item for item in chosen]
        if isinstance(chosen, str):
            return draw.choice([chosen, chosen.upper(), chosen.replace(" ", "-")])
        return chosen

    lines = []
    while len(lines) < COUNT:
        functions, answers, calls = [], [], []
        for index in range(draw.choice([1, 1, 2])):
            name = draw.choice(["geo.weather", "math.add", "find", "set_light"])
            if any(function["name"] == name for function in functions):
                continue
            properties = {}
            for parameter in draw.sample(["city", "days", "tags"], draw.randrange(1, 3)):
                kind = draw.choice([*pools, "array", "array", "tuple", "dict", "dict"])
                properties[parameter] = {"type": kind}
                if kind in ("array", "tuple"):
                    properties[parameter]["items"] = {"type": draw.choice(["string", "integer", "float", "dict"] if kind == "array" else ["string", "integer"])}
            required = [parameter for parameter in properties if draw.random() < 0.5]
            functions.append({"name": name, "parameters": {"properties": properties, "required": required}})
        model = draw.choice(["dots", "plain"])
        for _ in range(draw.choice([1, 1, 2])):
            function = draw.choice(functions)
            properties = function["parameters"]["properties"]
            kinds = {name: (details["type"], details.get("items", {}).get("type")) for name, details in properties.items()}
            answer = {name: right(*kind) for name, kind in kinds.items()}
            given = {name: said(answer[name], *kind) for name, kind in kinds.items() if "" not in answer[name] or draw.random() < 0.7}
            if draw.random() < 0.05:
                given["more"] = 1
            if given and draw.random() < 0.05:
                del given[next(iter(given))]
            name = function["name"].replace(".", "_") if model == "dots" else function["name"]
            answers.append({function["name"]: answer})
            calls.append({name if draw.random() < 0.95 else "other": given})
        draw.shuffle(calls)
        if draw.random() < 0.05:
            calls.append(calls[0])
        category = "parallel" if len(answers) > 1 else "multiple" if len(functions) > 1 else "simple"
        try:
            found = checker.ast_checker(functions, calls, answers, language, category, model)["valid"]
        except (AttributeError, TypeError, KeyError):
            # It breaks on some values of wrong types, and says nothing of them.
            continue
        reference = {"function": functions, "ground_truth": answers}
        if len(json.dumps(reference)) > 225:
            continue
        text = ""
        for index, call in enumerate(calls):
            [(name, arguments)] = call.items()
            arguments = json.dumps(arguments)
            # Whole, or in two pieces.
            cut = draw.randrange(len(arguments)) if draw.random() < 0.2 else len(arguments)
            text += json.dumps({"index": index, "function": {"name": name, "arguments": arguments[:cut]}})
            if arguments[cut:]:
                text += json.dumps({"index": index, "function": {"arguments": arguments[cut:]}})
        config = {} if model == "dots" else {"underscore-to-dot": False}
        if found or sum(line["scores"]["tool-call"] == 0 for line in lines) < COUNT / 2:
            lines.append(line_of_calls(len(lines), reference, found, config, text))
    write("tool-call", f"bfcl-eval {version('bfcl-eval')}, ast_checker for Python", seed, lines)


def line_of_calls(number, reference, found, config, text):
    return line(number, reference, {"tool-call": found}, config, **{"tool-calls": text})


def word_error_rate(seed):
    import jiwer

    plain = jiwer.Compose(
        [
            jiwer.ToLowerCase(),
            jiwer.RemovePunctuation(),
            jiwer.SubstituteRegexes({r"\s+": " "}),
            jiwer.Strip(),
        ]
    )
    transforms = {
        "none": (jiwer.wer_default, jiwer.cer_default),
        "words": tuple(
            jiwer.Compose([plain, end]) for end in (jiwer.ReduceToListOfListOfWords(), jiwer.ReduceToListOfListOfChars())
        ),
    }
    words = "the the the a I don't well-known Straße ÉCOLE naïve привет 你好 日本語 e\u0301 😀 3,141 U.S. … «ja» – _ $5 İ ς Σ".split()
    spaces = [" "] * 12 + ["  ", "\t", "\n", " \t ", "\u00a0", "\u3000\u3000", "\x1c", "\r\n", ", ", ""]
    draw = random.Random(seed)

    def said(of):
        """What a model makes of words: some are left out, doubled, changed or moved."""
        made = []
        for word in of:
            made += draw.choice([[word]] * 9 + [[], [word, word], [draw.choice(words)], [word.swapcase()], [word + "."]])
        if draw.random() < 0.2:
            cut = draw.randrange(len(made) + 1)
            made = made[cut:] + made[:cut]
        return made

    def text(of):
        return draw.choice(["", " ", "\n", "\t  "]) + "".join(word + draw.choice(spaces) for word in of)

    lines, right = [], 0
    pairs = {name: ([], []) for name in transforms}
    for number in range(COUNT):
        # Few words of few kinds have many alignments; long texts need several blocks of 64.
        length = 700 if number % 125 == 124 else 150 if number % 25 == 24 else draw.choice([0, 1, 3, 8, 20, 40])
        kinds = draw.choice([words, words[:3], words[:8]])
        of = draw.choices(kinds, k=length)
        found = draw.choice([said(of), said(of), of, draw.choices(kinds, k=draw.randrange(9)), []])
        reference, output = text(of), text(found)
        name = draw.choice(list(transforms))
        by_words, by_characters = transforms[name]
        both = {"reference_transform": by_words, "hypothesis_transform": by_words}
        counted = jiwer.process_words(reference, output, **both)
        scores = {
            "sample-word-error-rate": counted.wer,
            "sample-character-error-rate": jiwer.cer(
                reference, output, reference_transform=by_characters, hypothesis_transform=by_characters
            ),
            "word-hits": counted.hits,
            "word-substitutions": counted.substitutions,
            "word-deletions": counted.deletions,
            "word-insertions": counted.insertions,
        }
        right += counted.wer == 0
        pairs[name][0].append(reference)
        pairs[name][1].append(output)
        config = None if name == "none" else {"normalization": name}
        lines.append(line(number, reference, scores, config, output=output))
    runs = []
    for name, (references, outputs) in pairs.items():
        by_words, by_characters = transforms[name]
        runs.append(
            {
                "config": {} if name == "none" else {"normalization": name},
                "count": len(references),
                "word-error-rate": jiwer.wer(
                    references, outputs, reference_transform=by_words, hypothesis_transform=by_words
                ),
                "character-error-rate": jiwer.cer(
                    references, outputs, reference_transform=by_characters, hypothesis_transform=by_characters
                ),
            }
        )
    write("word-error-rate", f"jiwer {version('jiwer')}", seed, lines, right, runs=runs)



def mlperf_agentic(seed):
    """Needs `src` of mlcommons/endpoints at ea33275 in PYTHONPATH, and its packages."""
    import msgspec
    import pandas
    from inference_endpoint.core.record import EventRecord, EventType, SampleEventType
    from inference_endpoint.core.types import TextModelOutput
    from inference_endpoint.dataset_manager.agentic_inference_dataset import AgenticInferenceDataset
    from inference_endpoint.evaluation import scoring

    draw = random.Random(seed)
    # Scores with all their digits.
    scoring.round = lambda value, _digits: value
    programs = ["python", "/usr/bin/python3.11", "pytest", "GREP", "rg", "cat", "ls", "git", ".", "apt-get", "vim", "./run.sh", "sphinx-build", "less", "sed", "python3.11.2", "env", "/"]
    arguments = ["-m x", "'a | cat b'", '"it\\"s; ls"', "`git log`", "--all", "2>&1", "'open", "é.txt", ""]

    def command():
        stages = []
        for _ in range(draw.randint(1, 4)):
            before = draw.choice(["", "", "", "A=1 ", "sudo ", "env X=2 time ", "_b2= ", "exec\t"])
            stages.append(f"{before}{draw.choice(programs)} {draw.choice(arguments)}")
        return "".join(stage + draw.choice([" | ", " && ", "; ", "\n", " || ", " & "]) for stage in stages)

    def call(number):
        text = command()
        fields = draw.choice([{"command": text}, {"command": text}, {"cmd": text}, {"command": "", "cmd": text}, {"command": [text], "cmd": text}, {"path": text}])
        packed = draw.choice([json.dumps(fields), json.dumps(fields), json.dumps(fields, ensure_ascii=False), fields])
        name = draw.choice(["bash", "bash", "bash", "bash", "edit"])
        return {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": packed}}

    def calls(fewest):
        return [call(number) for number in range(draw.randint(fewest, 3))]

    def sentence():
        parts = ["intent: I042", "Intent:  i007", "I042", "I0421", "xI042", "I007.", "no intent", "INTENT:I100", "(I100)", "intents: I042"]
        return " ".join(draw.choice(parts) for _ in range(draw.randint(0, 3)))

    rows, events, answers = [], [], {}
    for number in range(COUNT):
        is_workflow = draw.random() < 0.3
        name = f"sim_{number}" if is_workflow else f"repo/{number}"
        codes = draw.choice([["I042"], ["i007", "I100"], ["", "I042"], []]) if is_workflow else None
        recorded = calls(1)
        rows.append({"conversation_id": name, "turn": 1, "role": "user", "content": "Go."})
        rows.append({"conversation_id": name, "turn": 2, "role": "assistant", "content": "x", "tool_calls": recorded, "intent_codes": codes})
        said = [(recorded + calls(0))[: draw.randint(0, 3)], calls(0)][draw.random() < 0.4]
        pieces = []
        for index, one in enumerate(said):
            packed = one["function"]["arguments"]
            text = packed if isinstance(packed, str) else json.dumps(packed)
            # A text that is cut is no JSON.
            text = text[:-2] if draw.random() < 0.1 else text
            cut = draw.randint(0, len(text))
            pieces.append({"index": index, "id": one["id"], "type": "function", "function": {"name": one["function"]["name"], "arguments": text[:cut]}})
            pieces.append({"index": index, "function": {"arguments": text[cut:]}})
        reasoning, output = sentence(), sentence()
        model = TextModelOutput(output=output, reasoning=reasoning or None, tool_calls=tuple((piece,) for piece in pieces) or None)
        uuid = str(number)
        events.append(EventRecord(event_type=SampleEventType.ISSUED, sample_uuid=uuid, conversation_id=name, turn=1))
        events.append(EventRecord(event_type=SampleEventType.COMPLETE, sample_uuid=uuid, conversation_id=name, turn=1, data=model))
        reference = {"intent_codes": codes} if is_workflow else {"tool_calls": recorded}
        answers[name] = (reference, {"output": output, "reasoning": reasoning, "tool-calls": "".join(map(json.dumps, pieces))})
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        encoder = msgspec.json.Encoder(enc_hook=EventType.encode_hook)
        (folder / "events.jsonl").write_bytes(b"".join(encoder.encode(event) + b"\n" for event in events))
        (folder / "sample_idx_map.json").write_text('{"performance": {}}')
        dataset = AgenticInferenceDataset(pandas.DataFrame(rows))
        scoring.AgenticInferenceInlineScorer("performance", dataset, folder).score()
        scored = json.loads((folder / "scores.json").read_text())["per_turn"]
    found = {row["conversation_id"]: {"inline-accuracy": row["score"]} for row in scored}
    lines = []
    for number, (name, (reference, exchange)) in enumerate(answers.items()):
        lines.append(line(number, reference, found.get(name, {}), **exchange))
    write("mlperf-agentic", "MLCommons endpoints ea33275, AgenticInferenceInlineScorer", seed, lines)


if __name__ == "__main__":
    makers = [final_number, multiple_choice, needle, overlap, contains, json_schema, tool_call, ifeval, word_error_rate, mlperf_agentic]
    # All, or those that are named.
    for make in makers:
        if make.__name__ in (sys.argv[1:] or [make.__name__]):
            make(20261123)
