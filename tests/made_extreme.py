"""A small invented data set of the Extreme Classification Repository, in each of its forms."""

import gzip
import json
from pathlib import Path

TITLES = ("bread", "rye", "loaf", "ship", "mast", "hull")
WORDS = ("flour", "oven", "sail", "rope", "wood")
TRAINING = ((0, 1), (), (3, 4, 5), (2,))
TEST = ((0,), (5, 3))


def write_raw(folder: Path, ending: str = ".json.gz") -> Path:
    """trn, tst and lbl as JSON lines; label 3 is document 2 of training itself."""
    labels = [{"uid": f"u{9 - n}", "title": title} for n, title in enumerate(TITLES)]
    write_lines(folder / f"lbl{ending}", labels)
    for name, rows in (("trn", TRAINING), ("tst", TEST)):
        write_lines(
            folder / f"{name}{ending}",
            [
                {
                    "uid": f"{name}{n}",
                    "title": f"Title {n}",
                    "content": f"Of {WORDS[n]}.",
                    "target_ind": list(row),
                    "target_rel": [1.0] * len(row),
                }
                for n, row in enumerate(rows)
            ],
        )
    (folder / "filter_labels_train.txt").write_text("2 3\n")
    (folder / "filter_labels_test.txt").write_text("")
    return folder


def write_sparse(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("trn", TRAINING), ("tst", TEST)):
        labels = ["".join(f"{n}:1.0 " for n in sorted(row)).strip() for row in rows]
        features = [f"{n}:0.5 {n + 1}:0.75" for n in range(len(rows))]
        for what, width, lines in (("Y", len(TITLES), labels), ("Xf", len(WORDS), features)):
            text = "\n".join([f"{len(rows)} {width}", *lines, ""])
            (folder / f"{name}_X_{what}.txt").write_text(text)
    _write_names(folder)
    return folder


def write_single(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("train", TRAINING), ("test", TEST)):
        lines = [f"{','.join(map(str, row))} {n}:0.5 {n + 1}:0.75" for n, row in enumerate(rows)]
        text = "\n".join([f"{len(rows)} {len(WORDS)} {len(TITLES)}", *lines, ""])
        (folder / f"{name}.txt").write_text(text)
    _write_names(folder)
    return folder


def write_lines(path: Path, rows: list[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def _write_names(folder: Path) -> None:
    (folder / "Yf.txt").write_text("".join(f"{n}->{name}\n" for n, name in enumerate(TITLES)))
    (folder / "Xf.txt").write_text("".join(f"{word}\n" for word in WORDS))
