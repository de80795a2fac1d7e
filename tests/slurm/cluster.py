"""A Slurm cluster on local machines: munged, slurmctld and one slurmd per node, in a temporary folder."""

import secrets
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from machines import WITH_PARENT, Machines, power_off

CONTROLLER = "ctl"
PATIENCE_S = 60.0
CONFIGURATION = """\
ClusterName=cobre
SlurmctldHost={controller}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=10
KillWait=20
MinJobAge=300
SchedulerParameters=bf_interval=1,sched_interval=1
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmdSpoolDir={folder}/spool-%n
StateSaveLocation={folder}/state
TmpFS={folder}/tmp-%n
{nodes}
PartitionName=debug Nodes=ALL Default=YES State=UP MaxTime=INFINITE
"""


class Cluster:
    """A controller and nodes; jobs are submitted on the controller."""

    def __init__(self, *nodes):
        self.nodes = nodes
        self._folder = Path(tempfile.mkdtemp(prefix="cobre-slurm-"))
        self.machines = Machines(self._folder, CONTROLLER, *nodes)
        self._running = {}
        self._munged = None

    def __enter__(self):
        try:
            self.machines.__enter__()
            self._write_files()
            self._start_munge()
            self._boot(CONTROLLER, "slurmctld", "-D", "-c")
            for node in self.nodes:
                self.power_on(node)
            self.wait_for_nodes("idle")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in [*self.nodes, CONTROLLER]:
            self.power_off(name)
        if self._munged is not None:
            self._munged.terminate()
            self._munged.wait()
        self.machines.__exit__()
        shutil.rmtree(self._folder, ignore_errors=True)

    def power_on(self, node):
        """Start a node."""
        self._boot(node, "slurmd", "-D", "-N", node)

    def power_off(self, name):
        """Kill all processes of a node (or a daemon) at once."""
        process = self._running.pop(name, None)
        if process is not None:
            power_off(process)

    def run(self, *command, check=True, **options):
        """Run a command of Slurm on the controller."""
        words = [*self.machines.on(CONTROLLER), *map(str, command)]
        surroundings = self._surroundings() | {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        environment = surroundings.pop("env") | options.pop("env", {})
        done = subprocess.run(words, check=False, text=True, timeout=120, env=environment, **surroundings, **options)
        assert done.returncode == 0 or not check, f"{command}: {done.stderr}"
        return done

    def wait_for_nodes(self, state):
        """Wait until all nodes are in that state."""
        self.wait_until(lambda: self._node_states() == {state}, f"nodes {state}")

    def wait_for_nodes_up(self):
        """Wait until all nodes can run jobs, or run some."""
        usable = {"idle", "mix", "alloc"}
        self.wait_until(lambda: (states := self._node_states()) and states <= usable, "nodes up")

    def wait_until(self, condition, what, patience_s=PATIENCE_S):
        """Poll until the condition holds; on failure, show the logs of the daemons."""
        deadline = time.monotonic() + patience_s
        while not condition():
            assert time.monotonic() < deadline, f"not within {patience_s} s: {what}\n{self.logs()}"
            time.sleep(0.1)

    def logs(self):
        """Return the last lines of each daemon."""
        return "\n".join(
            f"== {log.name}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-15:])
            for log in sorted(self._folder.glob("*.log"))
        )

    def _node_states(self):
        return {*self.run("sinfo", "-h", "-N", "-o", "%t", check=False).stdout.split()}

    def _boot(self, name, *command):
        self._running[name] = self.machines.boot(name, command, **self._surroundings(is_daemon=True))

    def _start_munge(self):
        files = {
            "socket": "munge.socket",
            "key-file": "munge.key",
            "pid-file": "munge.pid",
            "seed-file": "munge.seed",
            "log-file": "munge.log",
        }
        options = [f"--{option}={self._folder / name}" for option, name in files.items()]
        command = [*WITH_PARENT, "munged", "--foreground", *options]
        self._munged = subprocess.Popen(command, **self._surroundings(is_daemon=True))
        self.wait_until((self._folder / "munge.socket").exists, "munged listens")

    def _surroundings(self, *, is_daemon=False):
        """Return an environment without our own variables, which jobs would inherit."""
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "SLURM_CONF": str(self._folder / "slurm.conf")}
        environment["HOME"] = str(Path.home())
        if not is_daemon:
            return {"env": environment}
        # The daemons write their own logs.
        silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return {"env": environment, **silent}

    def _write_files(self):
        self._folder.chmod(0o755)  # munge wants all folders above its socket to be open
        for name in ("state", *(f"{kind}-{node}" for kind in ("spool", "tmp") for node in self.nodes)):
            (self._folder / name).mkdir()
        (self._folder / "munge.key").write_bytes(secrets.token_bytes(128))
        (self._folder / "munge.key").chmod(0o600)
        # Slurm knows the nodes by their addresses, so that it works where their names are not known.
        addresses = self.machines.addresses
        nodes = [f"NodeName={node} NodeAddr={addresses[node]} CPUs=4 State=UNKNOWN" for node in self.nodes]
        controller = f"{CONTROLLER}({addresses[CONTROLLER]})"
        text = CONFIGURATION.format(controller=controller, folder=self._folder, nodes="\n".join(nodes))
        (self._folder / "slurm.conf").write_text(text)
