"""What is said: values, notifications, filters, advertisements, and exact reasoning about them."""
