"""What happened together: patterns found in a stream of events, without I/O.

`Detector` takes events and a watermark and gives matches. It is here, above the model and beside the index that
it asks which events matter, so that a broker, Spark and a test can all use it: nothing in it reads a clock.
"""

from palio.matching.patterns.detector import Detector, DetectorStatistics
from palio.matching.patterns.hit import watermark_for
from palio.matching.patterns.match import Constituent, Match
from palio.matching.patterns.patternset import PatternSet

__all__ = ["Constituent", "Detector", "DetectorStatistics", "Match", "PatternSet", "watermark_for"]
