"""Siena's paper: how a sequence is matched, by the order of arrival and by time.

Siena's own code answers otherwise: it takes the latest events that stand side by side.
"""

from palio import Notification, Pattern
from palio.matching.patterns import Detector

ARRIVALS = ["B4", "A3", "A1", "B2", "A5", "B6", "A7", "B8"]


def found(pattern: str) -> list[str]:
    """What a pattern finds in events that arrive in this order, with their times as subscripts."""
    detector = Detector({"pattern": Pattern.parse(pattern)})
    for position, event in enumerate(ARRIVALS):
        detector.take(Notification({"what": event[0]}), time=int(event[1]), position=position, id=event)
    return ["·".join(one.id for one in match.constituents) for match in detector.close()]


def test_3_1_first_possible_match_then_start_anew():
    assert found('A[what = "A"] then B[what = "B"] within 1 h') == ["A3·B6", "A7·B8"]


def test_3_1_each_event_comes_one_by_one():
    detector = Detector({"pattern": 'A[what = "A"] then B[what = "B"] within 1 h'})
    seen = []
    for position, event in enumerate(ARRIVALS):
        detector.take(Notification({"what": event[0]}), time=int(event[1]), position=position, id=event)
        seen += ["·".join(one.id for one in match.constituents) for match in detector.advance(0)]
    assert seen == ["A3·B6", "A7·B8"]


def test_other_policies_answer_otherwise():
    sequence = 'A[what = "A"] then B[what = "B"] within 1 h'
    assert found(f"{sequence} order time") == ["A1·B2", "A3·B4", "A5·B6", "A7·B8"]
    assert found(f"{sequence} consume own") == ["A1·B2", "A3·B6", "A5·B8"]
    assert found(f"{sequence} consume none") == ["A1·B2", "A3·B6", "A5·B6", "A7·B8"]
    assert len(found(f"{sequence} select every")) == 8


def test_example_of_use_one_stock_up_then_another():
    detector = Detector(
        {"tech": 'm[symbol = "MSFT" and change > 0] then n[symbol = "NSCP" and change > 0] within 1 h'}
    )
    for time, (symbol, change) in enumerate([("NSCP", 2), ("MSFT", 1), ("NSCP", -1), ("NSCP", 3), ("NSCP", 4)]):
        detector.take(Notification({"symbol": symbol, "change": change}), time=time, position=time)
    (match,) = detector.advance(5)
    assert [(one.step, one.position) for one in match.constituents] == [("m", 1), ("n", 3)]
