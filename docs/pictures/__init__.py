"""Pictures of the documentation, drawn from simulated studies."""

# Before NumPy, so that the same picture is drawn on every machine.
import lore_active  # noqa: F401
