"""What people keep sessions with today, beside turnwal: the same work, the same machine, one run."""
