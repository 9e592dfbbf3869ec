"""Draw docs/rules.svg: the rules and what each waits for, by stage (`make picture`, Graphviz).

An arrow that follows from others is left out; whatever a rule reads, `snakemake --rulegraph` shows.
"""

import re
import subprocess
import sys
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "rules.svg"
STAGES = {  # rules file -> fill, light enough for black text
    "data": "#dbe9f6",
    "teacher": "#fde3c8",
    "heads": "#d9f0d3",
    "patching": "#e6dcf1",
    "distil": "#fbd9d9",
    "evaluate": "#d5efee",
    "significance": "#f6f0c4",
    "report": "#e8e8e8",
}


def rule_graph() -> nx.DiGraph:
    """Rules without the gathering targets, an edge from each to those that need it."""
    command = [sys.executable, "-m", "snakemake", "--rulegraph"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    names = dict(re.findall(r'(\d+)\[label = "(\w+)"', done.stdout))
    edges = re.findall(r"(\d+) -> (\d+)", done.stdout)
    graph = nx.DiGraph((names[a], names[b]) for a, b in edges)
    graph.remove_nodes_from(["all", "report"])
    return nx.transitive_reduction(graph)


def as_dot(graph: nx.DiGraph) -> str:
    """Graphviz text, one colour a stage."""
    lines = [
        "digraph rules {",
        "rankdir=TB; bgcolor=white; nodesep=0.15; ranksep=0.25;",
        'node [shape=box, style="rounded,filled", fontname="sans-serif", fontsize=11, height=0.3];',
        'edge [color="#777777", arrowsize=0.6];',
    ]
    for stage, colour in STAGES.items():
        text = (ROOT / "workflow" / "rules" / f"{stage}.smk").read_text(encoding="utf-8")
        for rule in re.findall(r"^rule (\w+):", text, re.MULTILINE):
            if rule in graph:
                label = rule.replace("_", " ")
                lines.append(f'{rule} [label="{label}", fillcolor="{colour}", tooltip="{stage}"];')
    lines += [f"{a} -> {b};" for a, b in sorted(graph.edges)]
    return "\n".join([*lines, "}"])


if __name__ == "__main__":
    command = ["dot", "-Tsvg", "-o", str(PICTURE)]
    subprocess.run(command, input=as_dot(rule_graph()), text=True, check=True)
    print(f"written: {PICTURE}")
