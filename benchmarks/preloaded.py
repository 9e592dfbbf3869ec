"""Processes that start with torch and transformers loaded: forks of one that has them.

Loading takes seconds and is no part of what is measured. The one process, which this module is when
it is run, loads, does nothing else and forks once for each line of standard input.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
import traceback
from typing import Any, NoReturn


def main() -> None:
    """Answer each request with the number of a new process."""
    import transformers.models.llama.modeling_llama  # noqa: F401 (what all own ways load)

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    for line in sys.stdin:
        process = os.fork()
        if process == 0:
            _become(json.loads(line))
        print(process, flush=True)


def _become(request: dict[str, Any]) -> NoReturn:
    """Run a module, reading and writing where the request says."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(os.open(request["input"], os.O_RDONLY), 0)
    os.dup2(os.open(request["output"], os.O_WRONLY), 1)
    os.dup2(os.open(request["errors"], os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    sys.stderr = os.fdopen(2, "w", buffering=1)
    sys.argv = [request["module"], *request["arguments"]]
    sys.path[:0] = request["path"]
    try:
        runpy.run_module(request["module"], run_name="__main__")
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()
