"""The forms of the Extreme Classification Repository, and what can be wrong with them."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from mechdistill.data.sources.collection import Collection, SourceDocument
from mechdistill.data.sources.extreme import check_extreme, read_extreme
from mechdistill.errors import InputError
from tests.made_extreme import TITLES, write_raw, write_single, write_sparse

Writer = Callable[[Path], Path]


def read(folder: Path) -> tuple[list[SourceDocument], Collection]:
    collection = read_extreme(folder)
    return list(collection.documents), collection


def refused(folder: Path, *parts: str) -> None:
    with pytest.raises(InputError) as caught:
        check_extreme(folder)
    assert all(part in str(caught.value) for part in parts), str(caught.value)


def put(path: Path, old: str, new: str) -> None:
    """Change a text once, packed or not."""
    packed = path.suffix == ".gz"
    data = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
    assert data.count(old.encode()) >= 1
    data = data.replace(old.encode(), new.encode(), 1)
    path.write_bytes(gzip.compress(data) if packed else data)


def test_raw_text(tmp_path: Path) -> None:
    documents, collection = read(write_raw(tmp_path))
    assert [one.document for one in documents] == [
        *("trn-0000000", "trn-0000002", "trn-0000003", "tst-0000000", "tst-0000001")
    ]
    assert documents[0].text == "Title 0\nOf flour."
    assert documents[0].codes == ("L000000", "L000001")
    # a label's number is its line's, whatever its uid says
    assert [label.title for label in collection.labels.values()] == list(TITLES)
    assert collection.tally.counts["training documents without a label, dropped"] == 1


def test_filtered_pairs_are_neither_true_nor_false(tmp_path: Path) -> None:
    documents, _ = read(write_raw(tmp_path))
    assert documents[1].filtered == ("L000003",)
    assert documents[1].codes == ("L000004", "L000005")


def test_missing_filter_files_are_told(tmp_path: Path) -> None:
    (write_raw(tmp_path) / "filter_labels_test.txt").unlink()
    (said,) = check_extreme(tmp_path).warnings
    assert "filter_labels_test.txt is not there" in said


def test_other_names_of_the_raw_files(tmp_path: Path) -> None:
    assert read(write_raw(tmp_path / "a"))[0] == read(write_raw(tmp_path / "b", ".raw.json.gz"))[0]


@pytest.mark.parametrize("write", [write_sparse, write_single])
def test_bags_of_words(tmp_path: Path, write: Writer) -> None:
    documents, collection = read(write(tmp_path))
    raw, _ = read(write_raw(tmp_path / "raw"))
    assert [set(one.codes) | set(one.filtered) for one in documents] == [
        set(one.codes) | set(one.filtered) for one in raw
    ]
    assert documents[0].text == "oven flour"  # by value, then by number
    assert collection.labels["L000002"].title == "loaf"


def test_names_in_another_encoding_are_read_with_a_warning(tmp_path: Path) -> None:
    folder = write_sparse(tmp_path)
    (folder / "Yf.txt").write_bytes("0->café\n1\n2\n3\n4\nhüll\n".encode("latin-1"))
    _, collection = read(folder)
    assert [collection.labels[code].title for code in ("L000000", "L000005")] == ["café", "hüll"]
    assert sum("Yf.txt, row 1: no UTF-8" in said for said in collection.tally.warnings) == 1


def test_missing_last_rows_are_empty_with_a_warning(tmp_path: Path) -> None:
    folder = write_sparse(tmp_path)
    put(folder / "trn_X_Y.txt", "\n2:1.0\n", "\n")
    documents, collection = read(folder)
    assert "trn-0000003" not in {one.document for one in documents}
    assert any("says 4 rows, the file has 3" in said for said in collection.tally.warnings)


@pytest.mark.parametrize(
    ("write", "file", "old", "new", "said"),
    [
        (write_raw, "trn.json.gz", "[2]", "[6]", "row 4, target_ind: found '6', expected a whole"),
        (write_raw, "tst.json.gz", "[1.0]", "[]", "row 1: target_rel has 0 values, target_ind"),
        (write_raw, "trn.json.gz", '"title"', '"name"', "row 1: key title is missing"),
        (write_raw, "trn.json.gz", "{", "", "row 1: this is no JSON"),
        (write_raw, "filter_labels_train.txt", "2 3", "2 9", "label: found '9'"),
        (write_raw, "filter_labels_train.txt", "2 3", "4 3", "found document 4, expected a number"),
        (write_raw, "filter_labels_train.txt", "2 3", "2", "row 1: found 1 parts"),
        (write_sparse, "trn_X_Y.txt", "4 6", "3 6", "row 4: the header says 3 rows"),
        (write_sparse, "trn_X_Y.txt", "4 6", "4 7", "found 7 columns, expected 6"),
        (write_sparse, "tst_X_Xf.txt", "2 5", "5", "first line: found 1 parts, expected"),
        (write_sparse, "trn_X_Y.txt", "2:1.0", "6:1.0", "row 4: found '6', expected a whole"),
        (write_sparse, "trn_X_Y.txt", "2:1.0", "rye", "row 4: found a text of 3 characters"),
        (write_sparse, "trn_X_Y.txt", "0:1.0 1", "0:1.0 0", "row 1: an index stands there twice"),
        (write_sparse, "tst_X_Y.txt", "2 6", "3 6", "tst_X_Y.txt has 3 rows, tst_X_Xf.txt has 2"),
        (write_single, "train.txt", "4 5 6", "5 5 6", "says 5 points, the file has 4"),
        (write_single, "train.txt", "0,1", "0,6", "row 1: found '6', expected a whole number"),
    ],
)
def test_what_is_wrong_is_named(
    tmp_path: Path, write: Writer, file: str, old: str, new: str, said: str
) -> None:
    put(write(tmp_path) / file, old, new)
    refused(tmp_path, file, said)


def test_a_cut_off_file(tmp_path: Path) -> None:
    path = write_raw(tmp_path) / "tst.json.gz"
    path.write_bytes(path.read_bytes()[:-12])
    refused(tmp_path, "tst.json.gz is cut off or damaged behind line", "at byte")


def test_a_folder_of_no_whole_form(tmp_path: Path) -> None:
    (write_raw(tmp_path) / "lbl.json.gz").unlink()
    refused(tmp_path, "holds no form of the data set whole", "trn.json.gz, tst.json.gz and lbl")
    refused(tmp_path / "none", "is no folder")
