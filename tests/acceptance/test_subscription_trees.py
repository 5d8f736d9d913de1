"""Worked examples of the decentralised subscription trees: their content part."""

from palio import Filter, Notification


def positions(*values) -> dict:
    """A tuple as a mapping: the place of a value is its name."""
    return {f"place{index}": value for index, value in enumerate(values)}


def test_at_1_tuples_and_subjects():
    f = Filter.template(positions("Vôo", "PR", None))
    assert f.matches(Notification(positions("Vôo", "PR", "10:45")))
    assert not f.matches(Notification(positions("Vôo", "SP", "10:45")))
    assert not f.matches(Notification(positions("Vôo", "PR"))), "no position may be left out"
    subject = Filter.parse('subject matches "/Exchange/Europe/NewYork/Technology/*"')
    assert subject.matches(Notification({"subject": "/Exchange/Europe/NewYork/Technology/XXX"}))
    assert not subject.matches(Notification({"subject": "/Exchange/Europe/NewYork/Energy/XXX"}))


def test_at_2_records():
    f = Filter.template({"compra": "Passagem", "empresa": "GOL", "destino": "PR"})
    assert f.matches(Notification({"compra": "Passagem", "empresa": "GOL", "destino": "PR"}))
    assert not f.matches(Notification({"compra": "Passagem", "empresa": "GOL"}))


def test_at_3_covering_that_a_pairwise_rule_misses():
    covering = Filter.parse("x between 5 and 8")
    first, second = Filter.parse("x between 4 and 7"), Filter.parse("x between 6 and 9")
    assert covering.covers(first.intersect(second))
    assert not covering.covers(first)
    assert not covering.covers(second)


def test_at_4_a_perfect_merge():
    merge = Filter.parse("x = 5 and y in (2, 3)").merge(Filter.parse("x = 5 and y in (4, 5)"))
    assert merge.perfect
    assert merge.filter == Filter.parse("x = 5 and y in (2, 3, 4, 5)")


def test_at_6_types_with_positions():
    def news(newspaper, section, subject):
        return {"type": "Notícias", "jornal": newspaper, "área": section, "assunto": subject}

    def flight(airline, origin, destination):
        return {"type": "Voo", "companhia": airline, "origem": origin, "destino": destination}

    exact = Filter.template(news("X", "X", "X"))
    loose = Filter.template(news("X", None, None))
    n = Notification(news("X", "X", "X"))
    assert exact.matches(n)
    assert loose.matches(n)
    assert loose.covers(exact)
    wanted = Filter.template(flight("X", "CTBA", "MG"))
    assert wanted.matches(Notification(flight("X", "CTBA", "MG")))
    assert not wanted.matches(n)

    first = Filter.template({"type": "Notícias", "jornal": "X", "coluna": "Y", "assunto": "A", "autor": None})
    second = Filter.template(
        {"type": "Voo", "companhia": None, "horário": "15:00", "origem": "A", "destino": "B"}
    )
    by_anyone = {"type": "Notícias", "jornal": "X", "coluna": "Y", "assunto": "A", "autor": "Ana"}
    at_three = {"type": "Voo", "companhia": "GOL", "horário": "15:00", "origem": "A", "destino": "B"}
    assert [f.matches(Notification(by_anyone)) for f in (first, second)] == [True, False]
    assert [f.matches(Notification(at_three)) for f in (first, second)] == [False, True]
    assert not first.overlaps(second)
