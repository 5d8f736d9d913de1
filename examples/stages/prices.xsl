<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
                xmlns:s="urn:palio:stages" xmlns="urn:example:card" xmlns:c="urn:example:card"
                exclude-result-prefixes="c">
  <!-- A catalogue becomes as many cards as it has products with a price. -->
  <xsl:template match="/c:catalogue">
    <xsl:if test="@closed = 'yes'">
      <xsl:message terminate="yes">This catalogue is closed.</xsl:message>
    </xsl:if>
    <s:documents>
      <xsl:for-each select="c:product[c:price]">
        <card>
          <code><xsl:value-of select="@code"/></code>
          <brand><xsl:value-of select="../@brand"/></brand>
          <price><xsl:value-of select="c:price"/></price>
        </card>
      </xsl:for-each>
    </s:documents>
  </xsl:template>
</xsl:stylesheet>
