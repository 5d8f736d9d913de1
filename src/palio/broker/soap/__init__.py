"""SOAP: WS-Notification and ONVIF's event service over the subscriptions of the gateway."""
