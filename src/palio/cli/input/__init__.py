"""What people type and what files hold, as events, filters, times."""
