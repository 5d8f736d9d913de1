"""What the data say: traffic, the values of attributes, what subscriptions find, and what that could save.

>>> figures = palio.spark.stats.gather(palio.spark.history(spark, "lake"), subscriptions)
>>> palio.spark.stats.report(figures, "report.html")

`gather` looks at all events two to four times and brings numbers to the driver, bounded whatever the data
(`figures`). `report` is a page of them, `hints` what a broker's index can learn from them.
"""

from palio.spark.stats.gathering import gather
from palio.spark.stats.reporting import hints, report

__all__ = ["gather", "hints", "report"]
