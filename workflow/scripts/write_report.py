"""Write the page (report.html) and the ten lines that a run ends with (findings.txt).

Inputs: --claims, --table1 (HTML), --measures (CSV), --figures (figureN.png, any number of files);
--summary (patching), --manipulation, --causal-agreement, --rankings, --head-scores,
--attention-rows, --predictions, --scores, --corpus, --comparisons, --definitions, --budgets (one
a student, .../METHOD/seedSEED/budget.json); --config, --traces (the teacher's), --examples,
--label-space, --tokenizer, --data-card; --events (the teacher's decisions), --head-effects,
--attribution (single heads at them), --head-sets, --knock-in, --knock-in-pairs, --event-attention,
--elicitation-probe, --elicitation-sets (before them); --origin (two CSV: quality.csv and
head_agreement.csv of a teacher from a checkpoint; none of one from scratch); --lists (patching
with several lengths of candidate lists, where they are swept); --recovery (causal recovery of
students, where it is measured).
Outputs: --report, --findings.
Parameters: study, seed, data, text_encoder, teacher, traces, heads, patching, distil, evaluate,
significance, report (the page lists all of them).
"""

import argparse
from collections import Counter
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

from mechdistill.artifacts import read_json, read_table, read_text, write_text
from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.models.shape import layers_and_heads
from mechdistill.parameters import Parameters
from mechdistill.report.claims.registry import read_claims
from mechdistill.report.decisions import EVENTS, event_counts
from mechdistill.report.elicitation import PROBE
from mechdistill.report.elicitation import SETS as ELICITING
from mechdistill.report.event_attention import COLUMNS as ATTENTION
from mechdistill.report.event_attention import attention_shares
from mechdistill.report.evidence import Design, read_evidence
from mechdistill.report.figures.heads import ranked_scores
from mechdistill.report.findings import Story, findings
from mechdistill.report.head_sets import COLUMNS as SETS
from mechdistill.report.head_sets import set_shares
from mechdistill.report.knock_in import COLUMNS as KNOCK_IN
from mechdistill.report.knock_in import PAIRS, knock_in_shares
from mechdistill.report.lists import lists_in_words
from mechdistill.report.page import Page, render
from mechdistill.report.page.origin import Origin
from mechdistill.report.tables import from_csv
from mechdistill.report.worked_example import worked_example
from mechdistill.traces.store import read_traces

TABLES = {
    "patching_summary": "summary",
    **{
        name: name
        for name in (
            *("manipulation", "causal_agreement", "rankings", "head_scores", "attention_rows"),
            *("predictions", "scores", "corpus", "comparisons"),
        )
    },
}
OTHERS = (
    *("claims", "table1", "measures", "definitions", "data_card"),
    *("events", "head_effects", "attribution", "head_sets"),
    *("knock_in", "knock_in_pairs", "event_attention"),
    *("elicitation_probe", "elicitation_sets"),
    *("config", "traces", "examples", "label_space", "tokenizer"),
)
SECTIONS = (
    *("study", "seed", "data", "text_encoder", "teacher", "traces", "heads", "patching"),
    *("distil", "evaluate", "significance", "report"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in (*TABLES.values(), *OTHERS):
        parser.add_argument(f"--{name.replace('_', '-')}", required=True, help="input")
    for name in ("figures", "budgets"):
        parser.add_argument(f"--{name}", required=True, nargs="+", help="inputs")
    parser.add_argument("--origin", nargs="*", default=[], help="inputs")
    for name in ("lists", "recovery"):
        parser.add_argument(f"--{name}", help="input")
    for name in ("report", "findings"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    check_arguments(args, "tokenizer", "label-space", "examples", "traces")
    parameters = {section: p[section] for section in SECTIONS}

    def design(key: str) -> Any:
        return reduce(getitem, key.split("."), parameters)

    budgets = {(b.parts[-3], int(b.parts[-2][4:])): b for b in map(Path, args.budgets)}
    paths = {name: Path(getattr(args, argument)) for name, argument in TABLES.items()}
    optional = {name: getattr(args, name) for name in ("lists", "recovery")}
    paths |= {name: Path(path) for name, path in optional.items() if path}
    evidence = read_evidence(paths, Design.of(design, layers_and_heads(args.config)), budgets)
    claims = read_claims(args.claims)
    space = read_label_space(args.label_space)
    traces = read_traces(args.traces)
    examples = read_examples(args.examples)
    candidates = lists_in_words(examples, space)
    lines = findings(Story(evidence, claims, space.wording.notes, candidates))
    scores = evidence.tables["head_scores"]
    page = Page(
        evidence=evidence,
        claims=claims,
        findings=lines,
        candidates=candidates,
        worked=worked_example(
            evidence.tables["attention_rows"],
            ranked_scores(scores, 1),
            ranked_scores(scores, 2),
            parameters["report"]["worked_example"],
            traces,
            examples,
            space,
            load_tokenizer(args.tokenizer),
        ),
        table1=read_text(args.table1),
        measures=from_csv(read_text(args.measures)),
        figures={int(f.stem.removeprefix("figure")): f for f in map(Path, args.figures)},
        definitions=read_json(args.definitions),
        parameters=parameters,
        decisions=event_counts(
            read_table(args.events, EVENTS, may_be_empty=True),
            Counter(trace.split for trace in traces),
        ),
        head_effects=read_table(args.head_effects, may_be_empty=True),
        attribution=read_table(args.attribution, may_be_empty=True),
        head_sets=set_shares(
            read_table(args.head_sets, SETS, may_be_empty=True), evidence.design.bootstrap
        ),
        knock_in=knock_in_shares(
            read_table(args.knock_in, KNOCK_IN, may_be_empty=True), evidence.design.bootstrap
        ),
        knock_in_pairs=read_table(args.knock_in_pairs, PAIRS),
        event_attention=attention_shares(
            read_table(args.event_attention, ATTENTION, may_be_empty=True),
            evidence.design.bootstrap,
        ),
        elicitation_probe=read_table(args.elicitation_probe, PROBE, may_be_empty=True),
        elicitation_sets=read_table(args.elicitation_sets, ELICITING, may_be_empty=True),
        data_card=read_text(args.data_card),
        origin=Origin.read(parameters["teacher"], *args.origin) if args.origin else None,
    )
    write_text(args.report, render(page))
    write_text(args.findings, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
