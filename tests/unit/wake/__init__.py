"""How an idle process is woken, on files of its own and without Django."""
