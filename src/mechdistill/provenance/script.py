"""Run one script of the workflow and report what it loaded, read and ran into.

`python -m mechdistill.provenance.script REPORT SCRIPT [ARGUMENT ...]` does what
`python SCRIPT [ARGUMENT ...]` does, and writes REPORT (JSON) for the run wrapper.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import runpy
import signal
import sys
import threading
import time
import traceback
from collections.abc import Collection
from pathlib import Path
from types import FrameType
from typing import Any

import mechdistill
from mechdistill.errors import InputError
from mechdistill.provenance.allocator import keep_freed_memory

SOURCE = Path(mechdistill.__file__).resolve().parents[1]
INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""


def main(arguments: list[str]) -> int:
    """Run the script; exit status 0, 1 after an error, 130 after Ctrl-C."""
    report, script, *rest = arguments
    # a shell's background job ignores Ctrl-C, and its children inherit that
    signal.signal(signal.SIGINT, _interrupt_once)
    _end_with_parent()
    keep_freed_memory()
    sys.argv = [script, *rest]
    sys.path[0] = str(Path(script).resolve().parent)
    status, failure = 0, None
    wrapper_modules = set(sys.modules)
    try:
        try:
            runpy.run_path(script, run_name="__main__")
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:
        status = INTERRUPTED
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        if status:
            failure = {"what": f"{script} stopped with {stop.code}", "remedy": "see the log"}
    except BaseException as error:
        status, failure = 1, explain(error)
    facts = {**_facts(wrapper_modules), "failure": failure}
    Path(report).write_text(json.dumps(facts), encoding="utf-8")
    return status


def explain(error: BaseException) -> dict[str, Any]:
    """What happened, what to do about it, and the traceback if it is the program's fault.

    An InputError quotes no text of the data; any other error may, so what is said of it without
    its message stands beside.
    """
    if isinstance(error, InputError):
        return {"what": error.what, "remedy": error.remedy}
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        what = f"the disk is full ({error.filename or error.strerror})"
        return {"what": what, "remedy": "free some space and start the same command again"}
    if isinstance(error, MemoryError):
        what, remedy = "the memory is full", "close other programs, or run with --cores 1"
        return {"what": what, "remedy": remedy}
    frames = traceback.extract_tb(error.__traceback__)
    places = (str(SOURCE), str(SOURCE.parent / "workflow"))
    own = [frame for frame in frames if os.path.abspath(frame.filename).startswith(places)]
    place = (own or list(frames))[-1]
    said = str(error).strip() or "no message"
    where = f"({place.filename}, line {place.lineno})"
    return {
        "what": f"{type(error).__name__}: {said} {where}",
        "remedy": "this is a fault of the program, please report it with the log",
        "traceback": "".join(traceback.format_exception(error)),
        "without_message": {  # which may quote the data
            "what": f"{type(error).__name__} {where}; its message is not shown, data are restricted",
            "traceback": "".join(traceback.format_tb(error.__traceback__)),
        },
    }


def _facts(wrapper_modules: Collection[str]) -> dict[str, Any]:
    """What the run record needs to know from inside the process."""
    torch = sys.modules.get("torch")
    parameters = sys.modules.get("mechdistill.parameters")
    services = sys.modules.get("mechdistill.provenance.services")
    modules = {name: module for name, module in sys.modules.items() if name not in wrapper_modules}
    files = (getattr(module, "__file__", None) for module in modules.values())
    loaded = {Path(file).resolve() for file in files if file}
    own = {path for path in loaded if path.is_relative_to(SOURCE)}
    # a training by several processes is done by this one's children
    used, others = (
        resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    peak = max(used.ru_maxrss, others.ru_maxrss)
    seconds = used.ru_utime + used.ru_stime + others.ru_utime + others.ru_stime
    return {
        "modules": sorted(path.relative_to(SOURCE.parent).as_posix() for path in own),
        "unread_parameters": [
            key for opened in getattr(parameters, "opened", ()) for key in opened.unread()
        ],
        "services": list(getattr(services, "asked", ())),
        "accelerator": _gpu(torch) if torch else None,
        "precision": str(torch.get_default_dtype()).removeprefix("torch.") if torch else None,
        "cpu_seconds": round(seconds, 2),
        "peak_memory_bytes": peak * (1 if sys.platform == "darwin" else 1024),
    }


def _gpu(torch: Any) -> str | None:
    """Model of the GPU that was used, if one was."""
    return torch.cuda.get_device_name() if torch.cuda.is_initialized() else None


def _interrupt_once(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, and let no second signal disturb the clearing away after it.

    A second one does come: the terminal or the driver signals the whole process group, and the
    wrapper passes its own on.
    """
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _end_with_parent() -> None:
    """End when the wrapper does, however it ended: nobody waits for this result any more."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
