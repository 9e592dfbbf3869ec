"""Write the schemas of params.yaml and of joined studies (`make schema`)."""

from pathlib import Path

from mechdistill.joined_study import joined_schema_text
from mechdistill.study import schema_text

FOLDER = Path(__file__).resolve().parents[1] / "schemas"

if __name__ == "__main__":
    for name, text in (("params", schema_text()), ("joined", joined_schema_text())):
        path = FOLDER / f"{name}.schema.json"
        path.write_text(text, encoding="utf-8")
        print(f"written: {path}")
