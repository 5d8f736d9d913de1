"""XPath 1.0 as names of attributes: read, checked, and written in one way only."""

from palio.documents.xpath.cost import MAX_PATH_STEPS, Extent, extent_of, path_steps
from palio.documents.xpath.errors import UnknownPrefix, XPathSyntaxError, XPathTooCostly, XPathTooLong
from palio.documents.xpath.expression import (
    BOOLEAN,
    NODES,
    NUMBER,
    STRING,
    FilteredPath,
    LocationPath,
    LocationStep,
    NameTest,
    NodeTest,
    XPathCall,
    XPathExpression,
    XPathNegation,
    XPathNumber,
    XPathOperation,
    XPathString,
    type_of,
)
from palio.documents.xpath.path import XPath, read_path, read_xpath
from palio.documents.xpath.writing import write_xpath

__all__ = [
    "BOOLEAN",
    "MAX_PATH_STEPS",
    "NODES",
    "NUMBER",
    "STRING",
    "Extent",
    "FilteredPath",
    "LocationPath",
    "LocationStep",
    "NameTest",
    "NodeTest",
    "UnknownPrefix",
    "XPath",
    "XPathCall",
    "XPathExpression",
    "XPathNegation",
    "XPathNumber",
    "XPathOperation",
    "XPathString",
    "XPathSyntaxError",
    "XPathTooCostly",
    "XPathTooLong",
    "extent_of",
    "path_steps",
    "read_path",
    "read_xpath",
    "type_of",
    "write_xpath",
]
