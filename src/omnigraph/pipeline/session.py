"""Session: the only code that makes or adopts the SparkSession of the pipeline.

An active session is used as it is. Otherwise one is made: the master comes from the configuration,
then from `OMNIGRAPH_SPARK_MASTER`, then it is this machine. Quiet, without a web page, and with a
class archive when there is one.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.errors import SparkError
from omnigraph.pipeline.archive import TARGET_SETTING, build_later, forget_archive, java_options
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

# Java only schedules here, so a fast start matters more than compiled code and collection.
_SMALL_JAVA = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")

_KNOWN_MASTER = re.compile(r"local(-cluster)?(\[.*\])?|spark://.+|yarn|k8s://.+")
_NOT_A_MASTER = "the master is not one Spark knows, as in local[2] or spark://host:7077"

_DEFAULTS = {
    "spark.app.name": "omnigraph",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    # Of a result that Java holds before it is read: its rows have to fit beside all else.
    "spark.driver.maxResultSize": "256m",
    # A task without memory fails, and is told so; by default it would end Java, here all of Spark.
    "spark.executor.killOnFatalError.depth": "0",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.python.worker.reuse": "true",
}

_made: SparkSession | None = None


def session(config: Mapping[str, str] | None = None) -> SparkSession:
    """The session the pipeline uses. `config` is a map of Spark settings; `master` may be in it.

    Raises:
        SparkError: There is no Java, or Spark did not start.
    """
    global _made
    # Ours first: a session is active only in the threads that its creating thread started.
    if _made is not None and not _is_stopped(_made):
        return _made
    active = _find_active()
    if active is not None and not _is_stopped(active):
        return active
    settings = dict(config or {})
    master = settings.pop("master", None) or os.environ.get(MASTER_VARIABLE) or LOCAL_MASTER
    if not _KNOWN_MASTER.fullmatch(master):
        raise SparkError(_start_failure(master, _NOT_A_MASTER))
    java = find_java()
    # Workers must run the interpreter, and see the package, that the driver has.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        made = _start(master, java, settings)
    except Exception as error:
        log.debug("Spark did not start", exc_info=True)
        raise SparkError(_start_failure(master, _advice(error))) from None
    made.sparkContext.setLogLevel(_log_level())
    if TARGET_SETTING not in settings:
        build_later(java)
    _made = made
    return made


def is_running() -> bool:
    """Whether `session` would return one that has started already."""
    known = (_made, _find_active())
    return any(each is not None and not _is_stopped(each) for each in known)


def _start(master: str, java: Java, settings: Mapping[str, str]) -> SparkSession:
    try:
        return _create(master, java, settings)
    except Exception as error:
        if not _is_java_gone(error) or not forget_archive(java):
            raise
        log.warning("Java did not start with the class archive, which is removed now")
        return _create(master, java, settings)


def _create(master: str, java: Java, settings: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master)
    for name, value in _settings(java, settings).items():
        builder = builder.config(name, value)
    with _java_home(java), warnings.catch_warnings():
        # Lance warns about any fork; this child executes another program immediately.
        warnings.filterwarnings("ignore", message="lance is not fork-safe")
        return builder.getOrCreate()


def _settings(java: Java, given: Mapping[str, str]) -> dict[str, str]:
    settings = dict(given)
    target = settings.pop(TARGET_SETTING, None)
    options = [*_SMALL_JAVA, f"-Dlog4j2.configurationFile={_log_file()}"]
    options += [f"-XX:ArchiveClassesAtExit={target}"] if target else java_options(java)
    own = settings.pop("spark.driver.extraJavaOptions", "")
    package_parent = str(Path(__file__).parents[2])
    return {
        **_DEFAULTS,
        "spark.executor.extraJavaOptions": " ".join(_SMALL_JAVA),
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
    try:
        return bool(spark.sparkContext._jsc is None or spark.sparkContext._jsc.sc().isStopped())
    except Exception:
        # Nothing answers any more: a Java without memory for what it was doing ends.
        log.warning("the Java process of Spark has ended; the next call starts another")
        _forget_java()
        return True


def _forget_java() -> None:
    """Have PySpark start another Java: it keeps the one it knows, whether that is there or not."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkSession._instantiatedSession = None


def _find_active() -> SparkSession | None:
    from pyspark.sql import SparkSession

    try:
        return SparkSession.getActiveSession()
    except Exception:
        _forget_java()
        return None


def _is_java_gone(error: Exception) -> bool:
    text = str(error)
    return "JAVA_GATEWAY_EXITED" in text or "gateway" in text.lower()


def _advice(error: Exception) -> str:
    text = str(error)
    if "Could not parse Master URL" in text or "INVALID_MASTER" in text:
        return _NOT_A_MASTER
    if _is_java_gone(error):
        return f"Java ended at once; set {LOG_VARIABLE}=warn to see what it says"
    return "check the master and the Spark settings"


def _start_failure(master: str, advice: str) -> str:
    return f"Spark did not start with master '{master}' — {advice}; nothing was written"
