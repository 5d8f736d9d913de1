"""What the data say: traffic, the values of attributes, what subscriptions find, and what that could save.

>>> figures = palio.spark.stats.report(palio.spark.history(spark, "lake"), "report.html", subscriptions)
>>> palio.spark.stats.write_hints(figures, "hints.json")

`gather` looks at all events two or three times and brings numbers to the driver, bounded whatever the data
(`figures`). The report is a page of them, hints are what a broker's index can learn from them.
"""

from palio.spark.stats.gathering import gather
from palio.spark.stats.reporting import hints, report, write_hints, write_numbers, write_report

__all__ = ["gather", "hints", "report", "write_hints", "write_numbers", "write_report"]
