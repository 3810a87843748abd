"""A Spark cluster on this machine, whose workers are processes of their own."""

import os
import sys

from pyspark.sql import SparkSession

from chronosym.spark import register


def session(workers):
    """Starts a cluster, and returns its session."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local-cluster[{workers},1,2048]").appName("chronosym")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "1g",
        "spark.sql.shuffle.partitions": "4",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    register(session)
    return session
