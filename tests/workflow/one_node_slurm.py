"""A Slurm of one node on this machine, from Debian's packages, for tests; needs root and apt.

No systemd, no control groups, no database: two partitions, two devices that stand in for graphics
cards, and Slurm's own log of completed jobs.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

PACKAGES = ("munge", "slurmctld", "slurmd", "slurm-client")
PROGRAMS = ("munged", "slurmctld", "slurmd", "squeue")
DEFAULT = Path("/etc/slurm/slurm.conf")
"""Where Slurm's commands look: Snakemake drops SLURM_CONF from a job's environment."""
NULL_DEVICE = os.makedev(1, 3)
CARDS = 2
MEMORY = 64_000
"""MB that the node says it has, whatever the machine has: jobs ask for more than they use here."""
FOLDER = "mechdistill-slurm"
"""How the names of our folders begin."""
OWNER = "owner.pid"
"""File there: the process of the tests."""


class Unavailable(Exception):
    """No Slurm can be had here, and why."""


def install() -> None:
    """Install Debian's packages where they are missing.

    Raises:
        Unavailable: not root, no apt, or no package.
    """
    if os.geteuid() != 0:
        raise Unavailable("only root can install and start Slurm")
    _forget_what_a_killed_run_left()
    if DEFAULT.exists():
        raise Unavailable(f"this machine is part of a cluster: {DEFAULT} is there")
    if all(map(shutil.which, PROGRAMS)):
        return
    if shutil.which("apt-get") is None:
        raise Unavailable("there is no apt-get to install Slurm with")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "-y", "--no-install-recommends", *PACKAGES]):
        done = subprocess.run(
            ["apt-get", "-qq", *arguments], env=environment, capture_output=True, text=True
        )
        if done.returncode != 0:
            said = (done.stderr.strip() or "no reason given").splitlines()[-1]
            raise Unavailable(f"apt-get {arguments[0]} failed: {said}")


@contextmanager
def running(folder: Path) -> Iterator[None]:
    """Within the block the node takes jobs; everything of it lies in `folder`."""
    node = socket.gethostname().partition(".")[0]
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    folder.chmod(0o755)
    (folder / OWNER).write_text(str(os.getpid()), encoding="utf-8")
    (folder / "slurm.conf").write_text(configuration(folder, node), encoding="utf-8")
    (folder / "cgroup.conf").write_text("CgroupAutomount=no\n", encoding="utf-8")
    cards = [folder / f"card{number}" for number in range(CARDS)]
    for card in cards:  # only a device will do, or cards are counted and given to nobody
        os.mknod(card, 0o600 | 0o020000, NULL_DEVICE)
    lines = [f"NodeName={node} Name=gpu File={card} Flags=nvidia_gpu_env\n" for card in cards]
    (folder / "gres.conf").write_text("".join(lines), encoding="utf-8")
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    with ExitStack() as daemons:
        daemons.callback(DEFAULT.unlink, missing_ok=True)
        DEFAULT.parent.mkdir(exist_ok=True)
        DEFAULT.symlink_to(folder / "slurm.conf")
        for command, asked in (
            (_munged(folder), ["munge", "--socket", str(folder / "munge.socket"), "--no-input"]),
            (["slurmctld", "-f", str(folder / "slurm.conf")], ["scontrol", "ping"]),
            (["slurmd", "-f", str(folder / "slurm.conf"), "-N", node], []),
        ):
            subprocess.run(command, check=True, capture_output=True, text=True)
            daemons.callback(_end, folder / f"{command[0]}.pid", command[0])
            if asked:
                wait(30, lambda asked=asked: _succeeds(asked), " ".join(command))
        wait(30, lambda: told("sinfo", "--noheader", "--format=%T").startswith("idle"), "the node")
        daemons.callback(_empty_the_queue)
        yield


def configuration(folder: Path, node: str) -> str:
    """Text of slurm.conf."""
    controller, daemon = _free_ports(2)
    return f"""
ClusterName=one
SlurmctldHost={node}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# a job that was requeued waits until its first credential has expired: seconds here, else minutes
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
SwitchType=switch/none
MpiDefault=none
SchedulerParameters=sched_interval=2,bf_interval=2,defer_batch
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/completed.txt
# ended jobs stay visible to squeue, which Snakemake asks where there is no database
MinJobAge=86400
KillWait=5
ReturnToService=2
NodeName={node} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} RealMemory={MEMORY} Gres=gpu:{CARDS}
PartitionName=cpu Nodes={node} Default=YES MaxTime=1-0 State=UP
PartitionName=gpu Nodes={node} MaxTime=1-0 State=UP
"""


def wait(seconds: float, ready: Callable[[], object], what: str) -> None:
    """Until `ready()` is true.

    Raises:
        TimeoutError: it never was.
    """
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: nothing in {seconds} s")
        time.sleep(0.1)


def told(*command: str) -> str:
    """What a command prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _succeeds(command: Sequence[str]) -> bool:
    return subprocess.run(command, capture_output=True).returncode == 0


def _munged(folder: Path) -> list[str]:
    names = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munged.pid"}
    names |= {"log-file": "munged.log", "seed-file": "munge.seed"}
    # a folder for all users above its own is no danger here
    return ["munged", "--force", *(f"--{option}={folder / name}" for option, name in names.items())]


def _free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _forget_what_a_killed_run_left() -> None:
    """End the daemons of a killed test and remove its link.

    Raises:
        Unavailable: that test is at work.
    """
    if not DEFAULT.is_symlink() or not DEFAULT.readlink().parent.name.startswith(FOLDER):
        return
    folder = DEFAULT.readlink().parent
    owner = folder / OWNER
    if owner.is_file() and psutil.pid_exists(int(owner.read_text(encoding="utf-8"))):
        raise Unavailable(f"another run of these tests has its Slurm here: {folder}")
    for name in ("slurmd", "slurmctld", "munged"):
        _end(folder / f"{name}.pid", name)
    DEFAULT.unlink()


def _empty_the_queue() -> None:
    """Jobs outlive the daemons otherwise."""
    told("scancel", "--me")
    wait(30, lambda: not told("squeue", "--noheader"), "the end of the last jobs")


def _end(pid_file: Path, name: str) -> None:
    """End the daemon that the file names, if it is that one."""
    try:
        process = psutil.Process(int(pid_file.read_text(encoding="utf-8")))
        if process.name() == name:
            process.terminate()
            process.wait(20)
    except (OSError, ValueError, psutil.NoSuchProcess):
        return
