"""Judge every claim of the paper on this study's tables.

Inputs: --head-scores, --rankings, --reliability, --dynamics, --attention-rows, --margin,
--generated, --manipulation, --scores, --curves, --corpus, --comparisons, --events, --ablation,
--head-effects, --attribution, --head-sets, --knock-in, --event-attention, --elicitation-probe,
--elicitation-sets; --budgets (one a student, .../METHOD/seedSEED/budget.json); --config, --traces
(the teacher's), --examples, --label-space, --tokenizer; --lists (patching with several lengths of
candidate lists, where they are swept); --recovery (causal recovery, where it was measured).
Outputs: --claims (CSV, one row a claim, its variants and our checks beside).
Parameters: study, distil.methods, distil.seeds, distil.student.family, heads.pool_size,
patching.bins, significance.bootstrap, significance.seed.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from mechdistill.artifacts import write_text
from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.heads.places import all_places
from mechdistill.models.shape import family_name, layers_and_heads
from mechdistill.parameters import Parameters
from mechdistill.report.attention import with_anchor_mass
from mechdistill.report.claims import judge_all
from mechdistill.report.claims.registry import to_csv
from mechdistill.report.evidence import Design, read_evidence
from mechdistill.traces.store import read_traces

TABLES = (
    *("head_scores", "rankings", "reliability", "dynamics", "attention_rows"),
    *("margin", "generated", "manipulation", "scores", "curves", "corpus", "comparisons"),
    *("events", "ablation", "head_effects", "attribution", "head_sets"),
    *("knock_in", "event_attention"),
    *("elicitation_probe", "elicitation_sets"),
)
IF_MADE = ("lists", "recovery")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    others = ("config", "traces", "examples", "label-space", "tokenizer")
    for name in (*(table.replace("_", "-") for table in TABLES), *others):
        parser.add_argument(f"--{name}", required=True, help="input")
    for name in IF_MADE:
        parser.add_argument(f"--{name}", help="input")
    parser.add_argument("--budgets", required=True, nargs="+", help="input, one a student")
    parser.add_argument("--claims", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    check_arguments(args, "label-space", "examples", "traces")
    paths = {name: Path(getattr(args, name)) for name in TABLES}
    paths |= {name: Path(getattr(args, name)) for name in IF_MADE if getattr(args, name)}
    budgets = {(b.parts[-3], int(b.parts[-2][4:])): b for b in map(Path, args.budgets)}
    families = (family_name(args.config), str(p["distil.student.family"]))
    design = replace(Design.of(p.__getitem__, layers_and_heads(args.config)), families=families)
    evidence = read_evidence(paths, design, budgets)

    kept = set(evidence.tables["attention_rows"]["example"])
    traces = [trace for trace in read_traces(args.traces) if trace.example in kept]
    examples, space = read_examples(args.examples), read_label_space(args.label_space)
    places = all_places(traces, examples, space, load_tokenizer(args.tokenizer))
    by_example = {place.example: place for place in places}
    rows = with_anchor_mass(evidence.tables["attention_rows"], by_example)

    files = {name: str(path) for name, path in paths.items()} | {"budgets": " ".join(args.budgets)}
    claims = judge_all(evidence.having(attention_rows=rows), files)
    write_text(args.claims, to_csv(claims))


if __name__ == "__main__":
    main()
