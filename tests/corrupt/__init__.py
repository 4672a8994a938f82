"""Change stored sessions in every way that a disk, an operator or an attacker could, and see that it is told."""
