"""Studies of earlier versions, as those left them, and the program that makes them."""

# Before NumPy, so that what is made here can be compared bit for bit on other machines.
import lore_active  # noqa: F401
