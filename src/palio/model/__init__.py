"""What is said: values, notifications, filters, advertisements, and exact reasoning about them."""

from palio.model.advertisement import Advertisement
from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.model.patterns.pattern import Pattern
from palio.model.valueset import ValueSet

__all__ = ["Advertisement", "Filter", "Notification", "Pattern", "ValueSet"]
