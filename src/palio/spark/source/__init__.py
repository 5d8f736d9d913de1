"""`format("palio")`: journals as tables and streams, and tables that become events."""
