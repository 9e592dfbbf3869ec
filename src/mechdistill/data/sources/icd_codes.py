"""ICD codes as texts: where the dot stands, and signs that a program took them for numbers.

Without dots codes of diagnoses and procedures collide ("0117" and "117"), with them they do not.
"""

import re

PLAIN_CODE = re.compile(r" *[0-9A-Za-z]{1,7} *")
"""A code as MIMIC has it, without a dot; CHAR(7) columns may be padded. Odd codes are codes too."""
PLAIN_CODE_OR_NOTHING = re.compile(r" *(?:[0-9A-Za-z]{1,7} *)?")
EXPECTED_CODE = "a code of 1 to 7 letters and digits without a dot, as text"


def with_dot(code: str, version: int, diagnosis: bool) -> str:
    """The code with its dot.

    ICD-9 diagnoses have it behind three characters, E codes behind four; ICD-9 procedures behind
    two; ICD-10-CM behind three; ICD-10-PCS nowhere. A code of that length or less has none.

    >>> with_dot("E8788", 9, True), with_dot("4019", 9, True), with_dot("3893", 9, False)
    ('E878.8', '401.9', '38.93')
    >>> with_dot("I5021", 10, True), with_dot("I10", 10, True), with_dot("02HV33Z", 10, False)
    ('I50.21', 'I10', '02HV33Z')
    """
    if version == 10 and not diagnosis:
        return code
    place = 3 if diagnosis else 2
    if version == 9 and diagnosis and code[:1] in ("E", "e"):
        place = 4
    return f"{code[:place]}.{code[place:]}" if len(code) > place else code


def historical_procedure(code: str) -> str:
    """An ICD-9 procedure code as it came out of reading the column as numbers (the 8,922 labels).

    Leading zeros are lost before the dot is set, so that codes merge.

    >>> historical_procedure("0066"), historical_procedure("3893")
    ('66.', '38.93')
    """
    number = str(int(code)) if code.isdigit() else code
    return f"{number[:2]}.{number[2:]}"


def without_trailing_dot(code: str) -> str:
    """A code of a file that has a dot behind every third character ("I10.").

    >>> without_trailing_dot("I10."), without_trailing_dot("I50.21")
    ('I10', 'I50.21')
    """
    return code.removesuffix(".")
