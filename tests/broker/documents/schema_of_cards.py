"""The schema of cards, and their family as somebody asks for it."""

from palio.documents.family import SchemaFile

CARD_SCHEMA = b"""<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:test:card"
    elementFormDefault="qualified">
  <xs:element name="card"><xs:complexType><xs:sequence>
    <xs:element name="code" type="xs:string"/>
    <xs:element name="brand" type="xs:string" maxOccurs="unbounded"/>
    <xs:element name="price" type="xs:decimal"/>
    <xs:element name="stock" type="xs:int" minOccurs="0"/>
  </xs:sequence></xs:complexType></xs:element>
</xs:schema>
"""
FILES = (SchemaFile("card.xsd", CARD_SCHEMA),)
PATHS = ("price=/card/price", "brand=/card/brand")
WANTED = {"schemas": [("card.xsd", CARD_SCHEMA)], "paths": PATHS, "key": ["/card/code"]}
