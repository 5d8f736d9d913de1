"""The cases of the web platform tests for XPath: each path finds the element that it is about."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest

from palio.documents.extraction import Extraction
from palio.documents.xpath import read_xpath

CASES = Path(__file__).resolve().parents[3] / "shared/conformance/wpt_xpath_tests.xml"


def test_every_case_of_the_web_platform_finds_its_element():
    etree = pytest.importorskip("lxml.etree")
    if not CASES.exists():
        pytest.skip("the cases of ../shared/conformance are not there")
    cases = etree.parse(CASES, etree.XMLParser(collect_ids=False)).getroot().findall("test")
    failed = []
    for number, case in enumerate(cases):
        path = read_xpath(case.findtext("xpath"), {})
        tree = etree.ElementTree(deepcopy(case.find("tree")[0]))
        result = case.find("result")
        name = etree.QName(result.findtext("namespace") or None, result.findtext("localname"))
        wanted = list(tree.iter(name))[int(result.findtext("nth"))]
        if Extraction([path]).found(tree).results[0] != [wanted]:
            failed.append(number)
    assert len(cases) == 1_024
    assert failed == []
