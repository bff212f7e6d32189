"""The shop: what it sells, the orders for it, and the outbox that the jobs write to."""
