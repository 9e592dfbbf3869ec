"""How property tests run everywhere: the same examples each time, on busy machines too."""

from hypothesis import settings

settings.register_profile("project", deadline=None, derandomize=True, database=None)
settings.load_profile("project")
