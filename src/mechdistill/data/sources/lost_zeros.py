"""Signs that a column of ICD-9 codes went through a program that took it for numbers."""

from mechdistill.data.sources.tables import Table
from mechdistill.errors import InputError


class ZeroWatch:
    """Watches the ICD-9 codes of a table for leading zeros that are lost.

    A diagnosis has three characters at least. One procedure code in ten begins with 0; short codes
    with none of four digits that begins so are what is left of them.
    """

    def __init__(self, table: Table, diagnosis: bool) -> None:
        self._table, self._diagnosis = table, diagnosis
        self._first_short = 0
        self._with_zero = False

    def see(self, code: str) -> None:
        """Take note of a code of the row that was read last; InputError if it alone tells."""
        if not code.isdigit():
            return
        if not self._diagnosis:
            self._with_zero = self._with_zero or (len(code) == 4 and code[0] == "0")
            if len(code) in (2, 3) and not self._first_short:
                self._first_short = self._table.rows
        elif len(code) < 3:
            raise self._error(self._table.rows)

    def finish(self) -> None:
        """Raise an InputError where, by all codes seen, zeros are lost."""
        if self._first_short and not self._with_zero:
            raise self._error(self._first_short)

    def _error(self, row: int) -> InputError:
        return InputError(
            f"{self._table.path}, row {row}: column {self._table.columns[2].name}: found a code of "
            "few digits, and no code of the file begins with 0: leading zeros are lost",
            "the column went through a program that takes it for numbers (pandas without "
            "dtype=str, a spreadsheet): take the file as it was published",
        )
