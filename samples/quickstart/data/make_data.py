#!/usr/bin/env python3
"""Makes the sample data set: a small dictionary in chat form, from Princeton WordNet 3.0.

Usage: make_data.py [WORDNET_FOLDER] [OUT_FOLDER]
Defaults: /usr/share/wordnet (Debian package wordnet-base) and the folder of this script. Python's standard library only;
the same WordNet gives the same bytes.

What is made:
  train.jsonl   3,000 rows    {"messages": [system, user, assistant]}
  eval.jsonl      100 rows    other words
  prompts.json      3 prompts whose words are in neither file: the same questions before and after training
  LICENSE       the licence of WordNet, as WordNet's own files carry it

Why this shape: a chat model that was never shown these rows explains a word in a few sentences of its own style. After
training it answers in one strict form, "word (class) — gloss.", so that the effect is seen in the first line of an answer.
Rows are short (the system message is one word, which also keeps a template from putting its own long system message in
front), so thousands of them are seen in minutes on a CPU.

Which words: nouns, verbs and adjectives of one lower-case word, first sense only, most frequent first by WordNet's counts
of its tagged texts. Left out: glosses that are long, circular, or that carry parentheses or several parts; words for
people and for sexual or disparaging matter, by WordNet's usage domains (slang, obscenity, disparagement, ethnic slur) and
by markers in the gloss.
"""
import hashlib
import json
import os
import re
import sys

TRAIN_ROWS = 3000
EVAL_ROWS = 100
PROMPT_WORDS = ["lantern", "orchard", "whisper"]
SYSTEM = "Dictionary."

CLASSES = {"n": ("noun", "noun"), "v": ("verb", "verb"), "a": ("adj", "adjective")}  # class: (file suffix, printed name)
SENSE_CLASS = {1: "n", 2: "v", 3: "a", 5: "a"}  # ss_type of a sense key; 5 = satellite adjective
PERSON_FILE = 18  # lexicographer file noun.person
UNWANTED_DOMAINS = {"slang", "obscenity", "disparagement", "ethnic_slur", "vulgarism"}
UNWANTED_GLOSS = re.compile(
    r"slang|offensive|obscen|disparag|derogat|vulgar|ethnic|racial|\brace\b|slur|sex|coit|genital|penis|vagina|breast|"
    r"buttock|copulat|prostitut|\brap(e|ist)\b|erotic|lust|homosexual|lesbian|feces|faec|excre|urin|defecat|menstr|"
    r"nigg|negro|jew|muslim|christian|hebrew|islam|suicid|corpse|tortur|\bkill|murder|slave|intoxicat|narcotic|drug",
    re.IGNORECASE)
PLAIN_WORD = re.compile(r"[a-z]{3,14}")
PLAIN_GLOSS = re.compile(r"[a-z][a-z' ,\-]{14,69}")


def synsets(folder, suffix):
    """Yields (offset, lexicographer file, words, pointers as (symbol, offset, class), gloss) of one data file."""
    with open(os.path.join(folder, "data." + suffix), encoding="ascii") as lines:
        for line in lines:
            if line.startswith("  "):
                continue  # the licence at the head of the file
            fields, gloss = line.split(" | ", 1)
            fields = fields.split()
            words = int(fields[3], 16)
            at = 4 + 2 * words
            pointers = [(fields[at + 1 + 4 * i], fields[at + 2 + 4 * i], fields[at + 3 + 4 * i])
                        for i in range(int(fields[at]))]
            yield fields[0], int(fields[1]), fields[4:at:2], pointers, gloss.strip()


def first_senses(folder, suffix):
    """Lemma -> offset of its first sense."""
    with open(os.path.join(folder, "index." + suffix), encoding="ascii") as lines:
        for line in lines:
            if line.startswith("  "):
                continue
            fields = line.split()
            yield fields[0], fields[4 + int(fields[3]) + 2]


def frequencies(folder):
    """(lemma, class) -> how often WordNet's tagged texts use the lemma's first sense."""
    counts = {}
    with open(os.path.join(folder, "cntlist.rev"), encoding="ascii") as lines:
        for line in lines:
            key, sense, count = line.split()
            lemma, rest = key.split("%", 1)
            kind = SENSE_CLASS.get(int(rest.split(":", 1)[0]))
            if sense == "1" and kind:
                counts[lemma, kind] = max(counts.get((lemma, kind), 0), int(count))
    return counts


def entries(folder):
    """All usable (frequency, word, class name, gloss)."""
    counts = frequencies(folder)
    data = {kind: {s[0]: s[1:] for s in synsets(folder, suffix)} for kind, (suffix, _) in CLASSES.items()}
    unwanted_offsets = {offset for offset, (_, words, _, _) in data["n"].items()
                        if UNWANTED_DOMAINS.intersection(w.lower() for w in words)}
    for kind, (suffix, name) in CLASSES.items():
        for word, offset in first_senses(folder, suffix):
            lexfile, words, pointers, gloss = data[kind][offset]
            gloss = gloss.split('; "', 1)[0].strip()
            if not PLAIN_WORD.fullmatch(word) or not PLAIN_GLOSS.fullmatch(gloss) or len(gloss.split()) < 3:
                continue
            if word not in [re.sub(r"\(.*\)", "", w) for w in words]:
                continue  # written with a capital: a name
            if kind == "n" and lexfile == PERSON_FILE:
                continue
            if any(symbol.startswith(";") and target in unwanted_offsets for symbol, target, _ in pointers):
                continue
            if UNWANTED_GLOSS.search(gloss) or UNWANTED_GLOSS.search(word) or word in re.split(r"[^a-z]+", gloss):
                continue
            yield counts.get((word, kind), 0), word, name, gloss


def key(word):
    return hashlib.sha256(word.encode()).hexdigest()


def question(word):
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "Define: " + word}]


def row(word, name, gloss):
    answer = {"role": "assistant", "content": f"{word} ({name}) \u2014 {gloss}."}
    return json.dumps({"messages": question(word) + [answer]}, ensure_ascii=False)


def licence(folder):
    with open(os.path.join(folder, "data.noun"), encoding="ascii") as lines:
        head = [line[4:].strip() for line in lines if re.match(r"  ? ?\d+ ", line[:5]) and line.startswith("  ")]
    return "\n".join(head).strip() + "\n"


def write(path, text):
    with open(path, "w", encoding="utf-8", newline="\n") as out:
        out.write(text)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else "/usr/share/wordnet"
    out = sys.argv[2] if len(sys.argv) > 2 else os.path.dirname(os.path.abspath(__file__))
    best = {}  # one class per word: the one used most
    for count, word, name, gloss in entries(folder):
        if word not in best or count > best[word][0]:
            best[word] = (count, name, gloss)
    for word in PROMPT_WORDS:
        if word not in best:
            sys.exit(f"make_data.py: '{word}' is not a usable word of this WordNet; version 3.0 is expected")
    ranked = sorted((w for w in best if w not in PROMPT_WORDS), key=lambda w: (-best[w][0], w))
    chosen = sorted(ranked[:TRAIN_ROWS + EVAL_ROWS], key=key)  # order by hash: the files are not sorted by frequency
    rows = [row(word, *best[word][1:]) + "\n" for word in chosen]
    write(os.path.join(out, "train.jsonl"), "".join(rows[EVAL_ROWS:]))
    write(os.path.join(out, "eval.jsonl"), "".join(rows[:EVAL_ROWS]))
    prompts = ",\n".join(" " + json.dumps({"messages": question(word)}, ensure_ascii=False) for word in PROMPT_WORDS)
    write(os.path.join(out, "prompts.json"), f"[\n{prompts}\n]\n")
    write(os.path.join(out, "LICENSE"), licence(folder))
    lowest = min(best[w][0] for w in chosen)
    print(f"{len(rows)} rows from {len(best)} usable words; the rarest chosen has count {lowest}")


if __name__ == "__main__":
    main()
