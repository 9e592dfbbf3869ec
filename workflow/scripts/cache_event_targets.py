"""Run the teacher over its training traces once and keep its attention at their decision events.

Arguments: --model, --config (the teacher's), --effects (patching/head_effects.parquet), --traces,
--examples, --label-space, --tokenizer; --student-tokenizer, only where the students have another
one.
Outputs: --events (event_targets.safetensors: query positions in the student's tokens, families of
decisions, pooled rows of the teacher's causal sets).
Parameters: heads.pool_size, heads.batch_size.
"""

import argparse

import torch

from mechdistill.artifacts import read_table
from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.distil.event_caching import cache_events, shared_events
from mechdistill.distil.event_pools import EFFECTS, causal_weights
from mechdistill.distil.event_targets import write_event_targets
from mechdistill.distil.retokenised import retokenise_all
from mechdistill.distil.sequences import usable, whole_trace
from mechdistill.models.loading import load_model
from mechdistill.parameters import Parameters
from mechdistill.traces.decision_events import decision_events
from mechdistill.traces.store import read_traces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "config", "effects", "traces", "examples", "label-space", "tokenizer"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--student-tokenizer", help="input, where it is not the teacher's")
    parser.add_argument("--events", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    check_arguments(
        args, "config", "tokenizer", "label-space", "examples", "traces", split="training"
    )
    teacher = load_model(args.model, args.config)
    tokenizer = load_tokenizer(args.tokenizer)
    traces = read_traces(args.traces, "training")
    space = read_label_space(args.label_space)
    examples = {each.example: each for each in read_examples(args.examples, "training")}

    def events_of(trace, its_tokenizer):
        return decision_events(trace, examples[trace.example], its_tokenizer, space)

    if args.student_tokenizer:
        other = load_tokenizer(args.student_tokenizer)
        pairs = [
            pair
            for pair in retokenise_all(traces, examples.values(), tokenizer, other, space)
            if usable(pair.student_trace())
        ]
        sequences = [pair.teacher_sequence() for pair in pairs]
        shared = {
            pair.teacher.example: shared_events(
                pair.same_decisions(
                    events_of(pair.teacher, tokenizer), events_of(pair.student, other)
                )
            )
            for pair in pairs
        }
    else:
        used = [trace for trace in traces if usable(trace)]
        sequences = [whole_trace(trace) for trace in used]
        found = {trace.example: events_of(trace, tokenizer) for trace in used}
        shared = {name: shared_events(zip(events, events)) for name, events in found.items()}
    weights = causal_weights(
        read_table(args.effects, EFFECTS, may_be_empty=True),
        layers=teacher.config.num_hidden_layers,
        heads=teacher.config.num_attention_heads,
        size=p["heads.pool_size"],
    )
    targets = cache_events(
        teacher,
        sequences,
        shared,
        weights,
        batch_size=p["heads.batch_size"],
        pad_id=tokenizer.pad_token_id,
        special_ids=tokenizer.all_special_ids,
    )
    write_event_targets(args.events, targets)


if __name__ == "__main__":
    main()
