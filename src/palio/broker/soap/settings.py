"""The settings of SOAP (`[soap]`)."""

from __future__ import annotations

import msgspec


class SoapSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Whether WS-Notification and ONVIF's event service are spoken on the HTTP port."""

    enabled: bool = False  # because strangers then have their XML read, before it is known who they are
