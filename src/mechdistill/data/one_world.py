"""Whether files that are read together belong together: the same words, codes, notes and heads.

The workflow sees to that by itself. Files that are passed by hand or copied from another study may
not fit, and many would be read all the same: their notes carry the same names, their ids are
numbers as good as any. So they are compared before any work is spent.
"""

from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mechdistill.artifacts import how_to_make, read_json, read_table
from mechdistill.data.labels import LabelSpace, read_label_space
from mechdistill.data.tokenizer import encode_prompt, is_word_level, load_tokenizer
from mechdistill.errors import InputError

File = str | Path | None


def check_one_world(
    *,
    config: File = None,
    tokenizer: File = None,
    label_space: File = None,
    examples: File = None,
    traces: File = None,
    twins: File = None,
    pools: File = None,
    rankings: File = None,
    split: str | None = None,
) -> None:
    """Compare the files that are given, each with each that it must fit.

    Args:
        config: configuration of the model that reads the tokens and has the ranked heads.
        pools: heads of a part of the model: those of a smaller one fit as well.
        split: only notes and traces of this split are read.

    Raises:
        InputError: two files do not belong together (file, row, what is found and what the other
            file asks for), or one of them cannot be read.
    """
    if config is not None:
        model = _shape(config)
        if tokenizer is not None:
            _check_vocabulary(tokenizer, model["vocab_size"], config)
        size = model["num_hidden_layers"], model["num_attention_heads"]
        if pools is not None:
            _check_pools(pools, size, config)
        if rankings is not None:
            _check_rankings(rankings, size, config)
    if label_space is not None:
        space = read_label_space(label_space)
        for path, codes in ((examples, _codes_of_notes), (traces, _codes_of_traces)):
            if path is not None:
                _check_codes(path, codes(path, split), space, label_space)
    if examples is not None and traces is not None and tokenizer is not None:
        _check_prompts(traces, examples, tokenizer, split)
    if examples is not None and twins is not None:
        _check_twins(twins, examples, split)


def check_arguments(
    args: Namespace, *names: str, split: str | None = None, **others: str | Path
) -> None:
    """`check_one_world` of the files that a script's arguments give (`label-space`) and others."""
    keys = [name.replace("-", "_") for name in names]
    files: dict[str, File] = {key: getattr(args, key) for key in keys}
    check_one_world(**files, **others, split=split)


def check_same_notes(paths: Sequence[str | Path]) -> None:
    """Notes of several runs of one data set are the same, byte for byte, since their seed is.

    Raises:
        InputError: two files differ.
    """
    first = Path(paths[0]).read_bytes()
    for path in paths[1:]:
        if Path(path).read_bytes() != first:
            raise InputError(
                f"{path} holds other notes than {paths[0]}, though both are of one data set",
                f"make both anew with this version: {how_to_make(path)}",
            )


def _shape(config: str | Path) -> dict[str, int]:
    content = read_json(config)
    keys = ("vocab_size", "num_hidden_layers", "num_attention_heads")
    missing = [key for key in keys if not isinstance(content.get(key), int)]
    if missing:
        raise InputError(
            f"{config} is no configuration of a model: it has no number {missing[0]}",
            how_to_make(config),
        )
    return {key: content[key] for key in keys}


def _check_vocabulary(path: str | Path, reads: int, config: str | Path) -> None:
    """A model of the world reads its tokenizer's tokens; a checkpoint's table may be longer."""
    tokenizer = load_tokenizer(path)
    count = len(tokenizer)
    if count > reads or (is_word_level(tokenizer) and count != reads):
        raise _strangers(
            f"{path} has {count} tokens, but the model of {config} reads {reads}", path
        )


def _check_pools(path: str | Path, size: tuple[int, int], config: str | Path) -> None:
    content = read_json(path)
    for phase in ("phase1", "phase2"):
        for at, head in enumerate(content.get(phase, {}).get("heads", ())):
            where = f"{path}, {phase}.heads[{at}]"
            _check_head(where, (head["layer"], head["head"]), size, config, path)


def _check_rankings(path: str | Path, size: tuple[int, int], config: str | Path) -> None:
    """Every head of the model has a rank under some variant, and no other head has."""
    frame = read_table(path, ["layer", "head"])
    heads = list(zip(frame["layer"].tolist(), frame["head"].tolist()))
    for at, head in enumerate(heads):
        _check_head(f"{path}, row {at}", head, size, config, path)
    layers, width = (1 + max(numbers) for numbers in zip(*heads))
    if (layers, width) != size:
        raise _strangers(
            f"{path} ranks the heads of {layers} layers of {width} heads, "
            f"but the model of {config} has {size[0]} of {size[1]}",
            path,
        )


def _check_head(
    where: str, head: tuple[int, int], size: tuple[int, int], config: str | Path, path: str | Path
) -> None:
    if head[0] >= size[0] or head[1] >= size[1]:
        raise _strangers(
            f"{where}: head {head[1]} of layer {head[0]}, but the model of {config} has layers 0 "
            f"to {size[0] - 1} with heads 0 to {size[1] - 1}",
            path,
        )


def _rows(path: str | Path, columns: list[str], split: str | None) -> list[dict[Any, Any]]:
    frame = read_table(path, ["example", "split", *columns])
    return (frame if split is None else frame[frame["split"] == split]).to_dict("records")


def _codes_of_notes(path: str | Path, split: str | None) -> Iterable[tuple[str, str, str]]:
    for row in _rows(path, ["gold", "near", "candidates", "regions"], split):
        for column in ("gold", "near", "candidates"):
            yield from ((row["example"], "label", code) for code in row[column])
        yield from ((row["example"], "region", code) for code in row["regions"])


def _codes_of_traces(path: str | Path, split: str | None) -> Iterable[tuple[str, str, str]]:
    for row in _rows(path, ["answer", "mentions"], split):
        yield from ((row["example"], "label", code) for code in row["answer"])
        yield from ((row["example"], m["kind"], m["code"]) for m in row["mentions"])


def _check_codes(
    path: str | Path,
    codes: Iterable[tuple[str, str, str]],
    space: LabelSpace,
    label_space: str | Path,
) -> None:
    """Args: codes: example, kind (label or region) and code of all that the file names."""
    known: Mapping[str, set[str]] = {
        "label": {label.code for label in space.labels},
        "region": {region.code for region in space.regions},
    }
    for example, kind, code in codes:
        if code not in known[kind]:
            raise _strangers(
                f"{path}, example {example}: {code} is none of the {len(known[kind])} {kind}s "
                f"of {label_space}",
                path,
            )


def _check_prompts(
    path: str | Path, examples: str | Path, tokenizer: str | Path, split: str | None
) -> None:
    """Every trace begins with the tokens of its example's prompt."""
    prompts = {row["example"]: row["prompt"] for row in _rows(examples, ["prompt"], split)}
    words = load_tokenizer(tokenizer)
    for row in _rows(path, ["tokens", "prompt_length"], split):
        prompt = _known(path, f"example {row['example']}", row["example"], prompts, examples)
        _check_prompt(
            f"{path}, example {row['example']}",
            row["tokens"][: row["prompt_length"]].tolist(),
            encode_prompt(words, prompt),
            f"{examples} with {tokenizer}",
            path,
        )


def _check_prompt(
    where: str, found: list[int], expected: list[int], source: str, path: str | Path
) -> None:
    if found != expected:
        pairs = enumerate(zip(found, expected))
        at = next((i for i, (a, b) in pairs if a != b), min(len(found), len(expected)))
        raise _strangers(
            f"{where}: token {at} of its prompt is {_at(found, at)}, "
            f"but {_at(expected, at)} in {source}",
            path,
        )


def _at(tokens: list[int], at: int) -> str:
    return str(tokens[at]) if at < len(tokens) else "missing"


def _check_twins(path: str | Path, examples: str | Path, split: str | None) -> None:
    """A twin is its example but for the words from the first to the last changed one."""
    prompts = {row["example"]: row["prompt"] for row in _rows(examples, ["prompt"], split)}
    for row in read_table(path, ["example", "twin", "prompt", "changed"]).to_dict("records"):
        name = f"twin {row['twin']} of {row['example']}"
        prompt = _known(path, name, row["example"], prompts, examples)
        start, end = int(row["changed"][0][0]), int(row["changed"][-1][1])
        for found, expected in (
            (row["prompt"][:start], prompt[:start]),
            (row["prompt"][end:], prompt[len(prompt) - len(row["prompt"]) + end :]),
        ):
            if found != expected:
                raise _strangers(
                    f"{path}, {name}: it reads {found[-40:]!r} where nothing was changed, "
                    f"but its example in {examples} {expected[-40:]!r}",
                    path,
                )


def _known(
    path: str | Path, name: str, example: str, prompts: Mapping[str, str], examples: str | Path
) -> str:
    if example not in prompts:
        raise _strangers(f"{path}, {name}: {examples} has no such example", path)
    return prompts[example]


def _strangers(what: str, path: str | Path) -> InputError:
    return InputError(what, f"give files of one run of one study, or {how_to_make(path)}")
