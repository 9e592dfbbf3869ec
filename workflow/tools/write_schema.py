"""Write workflow/schemas/params.schema.json from mechdistill.study (`make schema`)."""

from pathlib import Path

from mechdistill.study import schema_text

SCHEMA = Path(__file__).resolve().parents[1] / "schemas" / "params.schema.json"

if __name__ == "__main__":
    SCHEMA.write_text(schema_text(), encoding="utf-8")
    print(f"written: {SCHEMA}")
