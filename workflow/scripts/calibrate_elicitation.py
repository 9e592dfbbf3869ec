"""Hold what heads do before a region is decided against nulls and against those that decide it.

Inputs: --ablation and --attention (of the rule ablate_before_events), --at-events (of the rule
calibrate_heads).
Outputs: --effects (one row an offset and head), --sets (one an offset).
Parameters: patching.false_discovery, heads.bootstrap, heads.seed.
"""

import argparse

from mechdistill.artifacts import read_table, write_table
from mechdistill.parameters import Parameters
from mechdistill.patching.calibration import EFFECTS
from mechdistill.patching.elicitation import ABLATION, ATTENTION
from mechdistill.patching.eliciting_heads import effects_before, eliciting_sets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("ablation", "attention", "at-events"):
        parser.add_argument(f"--{name}", required=True, help="input")
    for name in ("effects", "sets"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    drawn = {"resamples": p["heads.bootstrap"], "seed": p["heads.seed"]}
    ablation = read_table(args.ablation, ABLATION, may_be_empty=True)
    effects = effects_before(ablation, level=p["patching.false_discovery"], **drawn)
    at_events = read_table(args.at_events, EFFECTS, may_be_empty=True)
    attention = read_table(args.attention, ATTENTION, may_be_empty=True)
    sets = eliciting_sets(effects, at_events, attention, **drawn)
    write_table(args.effects, effects)
    write_table(args.sets, sets)


if __name__ == "__main__":
    main()
