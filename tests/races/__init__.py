"""Several processes want one session: what they are told, and what the log says of it afterwards."""
