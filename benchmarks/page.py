"""The page of the benchmarks: tables as CSV, plots, and docs/benchmarks.md, from what was measured.

python -m benchmarks.page
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.curves import draw_curves, draw_ratios, fitted
from benchmarks.measurement import ROOT, median_and_quartiles, memory_ratio, ratios, results

Record = Mapping[str, Any]

INTRODUCTION = """\
# Benchmarks

`make bench` measures and writes this page; it goes on where it stopped. Every way of doing a piece
of work runs in a process of its own on one thread. The ways of a case take turns, in alternating
order; a ratio is taken turn by turn and told by its median and quartiles, so that other load hits
both alike. Times are CPU seconds. Memory is the peak of a first turn over what was resident before
it, freed memory being given back at once; weights and loaded code are not counted. In the timed
turns after it every process keeps freed memory, as the jobs of the workflow do: a kernel that
clears pages anew for every large tensor would be timed along. A way too slow for a timed turn is
compared by first turns. Ways are checked to give the same values. "Target" is what the project
promised itself before measuring; a missed one is written as missed.

"""

WAYS = """\
**Row scoring**: sharpness, alignment, loop-back and help of all heads at 30 query positions of a
made-up Llama (12 layers of 12 heads, width 384, 21 M parameters). `plain` is the fused pass that
shows nothing, `rows` the tapped one with all factors, `every variant` all that `score_heads`
computes (three anchors, as-printed kurtosis, total gradients through later layers). `eager` returns
attention weights; `nnsight` reads those of the eager model in a trace; `TransformerLens` caches
patterns, `TransformerLens, sliced` keeps only the asked rows in hooks. **Patching sweep**: outputs
of a random tenth of the heads put in at the last position, 16 conditions in both directions;
`a pass each` is a full fused pass a condition with a hook of the projection. **Ablation**: every
head alone replaced by a mean output at the last position; `a pass a head` is a full fused pass for
each, `attribution` the first-order estimate of all. **Generation**: 16
patched conditions written on for 32 tokens. **Training step**: all six mechanistic terms on cached
teacher targets against L_CoT alone, optimiser included; the teacher is in memory in neither (its
targets come from a file).

"""


def load(folder: Path) -> list[dict[str, Any]]:
    """All records, in a stable order."""
    files = sorted(path for path in folder.glob("*.json") if path.name != "limits.json")
    found = [json.loads(path.read_text(encoding="utf-8")) for path in files]
    return sorted(found, key=lambda r: (r["benchmark"], r["axis"], r["value"]))


def way_table(records: Iterable[Record]) -> pd.DataFrame:
    """One row a way of a case."""
    rows = []
    for record in records:
        for name, way in record["ways"].items():
            seconds, low, high = median_and_quartiles(way["seconds"] or [way["first"]])
            rows.append(
                _where(record)
                | {
                    "way": name,
                    "turns": len(way["seconds"]),
                    "seconds": seconds,
                    "seconds_q1": low,
                    "seconds_q3": high,
                    "first_seconds": way["first"],
                    "peak_mib": way["peak_mib"],
                    "absent": way["absent"],
                    "commit": record["commit"],
                }
            )
    return pd.DataFrame(rows)


def ratio_table(records: Iterable[Record]) -> pd.DataFrame:
    """One row a comparison of a case."""
    rows = []
    for record in records:
        for comparison in record["comparisons"]:
            of = ratios(record, comparison)
            ratio, low, high = median_and_quartiles(of)
            rows.append(
                _where(record)
                | {
                    "way": comparison["way"],
                    "against": comparison["against"],
                    "kind": "times faster" if comparison["faster"] else "times the cost",
                    "turns": len(of),
                    "time": ratio,
                    "time_q1": low,
                    "time_q3": high,
                    "time_target": comparison["time_target"],
                    "memory": memory_ratio(record, comparison),
                    "memory_target": comparison["memory_target"],
                    "largest_difference": comparison["difference"],
                    "absent": " ".join(
                        why
                        for name in (comparison["way"], comparison["against"])
                        if (why := record["ways"][name]["absent"])
                    ),
                }
            )
    return pd.DataFrame(rows)


def page(
    records: list[dict[str, Any]], limits: Record | None, pictures: Iterable[str], note: str = ""
) -> str:
    """The Markdown; the note says what else is to be known about this measurement."""
    ways, table = way_table(records), ratio_table(records)
    parts = [INTRODUCTION, WAYS, _machine(records)]
    parts += [f"{note}\n\n"] if note else []
    promised = table["time_target"].notna()
    parts += ["## Targets\n\n", _ratio_rows(table[promised]), "\n", _legend()]
    parts += ["## Other ratios\n\n", _ratio_rows(table[~promised]), "\n"]
    parts += ["## Times and memory\n\n", _way_rows(ways), "\n"]
    parts += ["## How costs grow\n\n", _powers(ways), "\n"]
    parts += [f"![{Path(name).stem}](benchmarks/{name})\n\n" for name in pictures]
    if limits is not None:
        parts += ["## What the limit is\n\n", _limits(limits)]
    return "".join(parts).rstrip() + "\n"


def _where(record: Record) -> dict[str, Any]:
    keys = ("benchmark", "axis", "value")
    return {key: record[key] for key in keys} | {"model": record["setting"]["model"]}


def _machine(records: Iterable[Record]) -> str:
    about = {
        f"{r['machine']}; " + ", ".join(f"{k} {v}" for k, v in r["versions"].items())
        for r in records
    }
    commits = sorted({r["commit"] for r in records})
    lines = "".join(f"- {line}\n" for line in sorted(about))
    return f"Measured at {', '.join(commits)} on\n\n{lines}\n"


def _ratio_rows(table: pd.DataFrame) -> str:
    lines = ["| work | size | way | time (quartiles) | target | memory | target | same values to |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for row in table.to_dict("records"):
        size = f"{row['value']} {row['axis']}"
        if row["absent"]:
            words = f"{row['way']} against {row['against']} | {row['absent']} | | | | |"
            lines.append(f"| {row['benchmark']} | {size} | {words}")
            continue
        least = row["kind"] == "times faster"
        what = f"{row['way']}, {row['kind']}{' than' if least else ' of'} {row['against']}"
        spread = f" ({row['time_q1']:.3g} to {row['time_q3']:.3g})" if row["turns"] > 1 else ""
        cells = [
            row["benchmark"],
            size,
            what,
            f"{_number(row['time'], least)}{spread or ' (one turn)'}",
            verdict(row["time"], row["time_target"], least),
            _number(row["memory"], least),
            verdict(row["memory"], row["memory_target"], least),
            "-" if np.isnan(row["largest_difference"]) else f"{row['largest_difference']:.0e}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def verdict(ratio: float, target: float | None, least: bool) -> str:
    """A target and whether it was met; "" where none was set."""
    if target is None or np.isnan(target):
        return ""
    met = ratio >= target if least else ratio <= target
    return f"{'≥' if least else '≤'} {target:g}: {'met' if met else '**missed**'}"


def _number(value: float, least: bool) -> str:
    return f"{value:.1f}" if least else f"{value:.3f}"


def _legend() -> str:
    return (
        "`memory` is a ratio of peaks in the same sense: the cost beside a time's cost, how many "
        "times less beside how many times faster. The last column: the largest difference of the "
        "two ways' values (kurtosis, cosine, loop-back and help; margins; tokens; losses of the "
        "first step) as a share of the largest value; `-` where a way shows none.\n\n"
    )


def _way_rows(table: pd.DataFrame) -> str:
    lines = [
        "| work | size | way | seconds (quartiles) | turns | peak MiB |",
        "|---|---|---|---|---|---|",
    ]
    for row in table[table["absent"] == ""].to_dict("records"):
        spread = f" ({row['seconds_q1']:.3g} to {row['seconds_q3']:.3g})" if row["turns"] else ""
        lines.append(
            f"| {row['benchmark']} | {row['value']} {row['axis']} | {row['way']} | "
            f"{row['seconds']:.3g}{spread} | {max(row['turns'], 1)} | {row['peak_mib']:.0f} |"
        )
    return "\n".join(lines) + "\n"


def _powers(ways: pd.DataFrame) -> str:
    lines = [
        "| work | axis | way | sizes | exponent of time | of peak memory |",
        "|---|---|---|---|---|---|",
    ]
    for curve in fitted(ways):
        error = "" if np.isnan(curve.time.error) else f" ± {curve.time.error:.2f}"
        memory = "" if curve.memory is None else f"{curve.memory.exponent:.2f}"
        sizes = f"{min(curve.sizes)} to {max(curve.sizes)}"
        lines.append(
            f"| {curve.benchmark} | {curve.axis} | {curve.way} | {sizes} | "
            f"{curve.time.exponent:.2f}{error} | {memory} |"
        )
    note = (
        "\nLeast squares of logarithms over the measured sizes, with standard errors: fixed parts "
        "of a cost bend such lines, so these are descriptions of this range, not of any other. "
        "`beside the pass` is `rows` less `plain`.\n"
    )
    return "\n".join(lines) + "\n" + note


def _limits(found: Record) -> str:
    rate, copy = found["operations_per_second"], found["bytes_per_second"]
    lines = [
        f"At {found['tokens']} tokens, one layer, one thread, fp32. Best measured rates: matrix "
        f"product {rate / 1e9:.0f} GFLOP/s, copy {copy / 2**30:.1f} GiB/s (read and written). "
        "A piece's limit is the larger of its operations at the first rate and its bytes at the "
        "second.\n",
        "| piece | of | MFLOP | MiB | limit ms | set by | measured ms | limit / measured |",
        "|---|---|---|---|---|---|---|---|",
    ]
    total: dict[str, float] = {}
    least: dict[str, float] = {}
    for piece in found["pieces"]:
        by_product, by_copy = piece["operations"] / rate, piece["bytes"] / copy
        limit = max(by_product, by_copy)
        part = piece["part_of"]
        total[part] = total.get(part, 0.0) + piece["seconds"]
        least[part] = least.get(part, 0.0) + limit
        lines.append(
            f"| {piece['name']} | {part} | {piece['operations'] / 1e6:.0f} | "
            f"{piece['bytes'] / 2**20:.1f} | {1e3 * limit:.2f} | "
            f"{'operations' if by_product > by_copy else 'bytes'} | "
            f"{1e3 * piece['seconds']:.2f} | {limit / piece['seconds']:.2f} |"
        )
    lines.append(
        f"\nThe scores add {total['scores'] / total['pass']:.1%} to these pieces of a pass; at "
        f"both limits they would add {least['scores'] / least['pass']:.1%}.\n"
    )
    lines += ["Where the CPU time of a whole turn goes (profiler):\n"]
    lines += ["| operation | plain | rows |", "|---|---|---|"]
    plain, rows = found["profile"]["plain"], found["profile"]["rows"]
    for name in sorted({*plain, *rows}, key=lambda key: -rows.get(key, 0.0)):
        cells = [f"{of[name]:.1%}" if name in of else "" for of in (plain, rows)]
        lines.append(f"| {name} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines) + "\n"


def write_page(
    records: list[dict[str, Any]], limits: Record | None, docs: Path, note: str = ""
) -> None:
    """docs/benchmarks.md, and what it shows in docs/benchmarks/."""
    folder = docs / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    ways = way_table(records)
    ways.to_csv(folder / "ways.csv", index=False, float_format="%.5g")
    ratio_table(records).to_csv(folder / "ratios.csv", index=False, float_format="%.5g")
    pictures = [*draw_curves(ways, folder), *draw_ratios(ratio_table(records), folder)]
    (docs / "benchmarks.md").write_text(page(records, limits, pictures, note), encoding="utf-8")


def main() -> None:
    """Read the results, write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder of the page")
    parser.add_argument("--note", default="", help="about this measurement, onto the page")
    args = parser.parse_args()
    records = load(results())
    if not records:
        raise SystemExit(f"{results()} holds no results: run python -m benchmarks.run first")
    limits = results() / "limits.json"
    kept = json.loads(limits.read_text(encoding="utf-8")) if limits.exists() else None
    write_page(records, kept, args.docs, args.note)


if __name__ == "__main__":
    main()
