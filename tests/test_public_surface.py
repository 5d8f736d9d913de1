"""What other code relies on."""

import palio


def test_the_readme_example():
    f = palio.Filter.parse('symbol = "ACME" and price > 100')
    g = palio.Filter.parse('symbol = "ACME" and price > 200')
    n = palio.Notification({"symbol": "ACME", "price": 101.5})
    assert f.matches(n)
    assert f.covers(g)
    assert f.overlaps(g)
    assert f.intersect(g) == g
    index = palio.MatchIndex()
    index.add("sub-1", f)
    assert index.match(n) == ["sub-1"]
    index.remove("sub-1")
    assert index.match(n) == []


def test_everything_is_exported_once_and_documented():
    assert sorted(set(palio.__all__)) == sorted(palio.__all__)
    for name in palio.__all__:
        assert getattr(palio, name).__doc__, name


def test_all_our_errors_have_one_base():
    errors = [getattr(palio, name) for name in palio.__all__ if "Error" in name or "Invalid" in name]
    assert all(issubclass(error, palio.PalioError) for error in errors)
