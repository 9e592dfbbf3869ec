"""What was counted while a data set was read."""

from dataclasses import dataclass, field

from mechdistill.data.sources.tables import Table


@dataclass
class Tally:
    """Counts by what they count, in order, and warnings; neither holds any text of the data."""

    counts: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def add(self, what: str, number: int = 1) -> None:
        """Count one more, or so many."""
        self.counts[what] = self.counts.get(what, 0) + number

    def finish(self, name: str, table: Table) -> None:
        """Take the rows and warnings of a table that is read to its end."""
        self.counts[f"rows of {name}"] = table.rows
        self.warnings += [said for said in table.warnings if said not in self.warnings]


@dataclass
class Patients:
    """Whose admission it is: one patient each, whatever table says so."""

    _of: dict[int, int] = field(default_factory=dict)

    def check(self, admission: int, patient: int, table: Table) -> None:
        """Raise an InputError where another row gives the admission to another patient."""
        if self._of.setdefault(admission, patient) != patient:
            raise table.error(
                "columns subject_id and hadm_id: this admission is another patient's in an "
                "earlier row or table",
                "take all tables of one release as they were published",
            )
