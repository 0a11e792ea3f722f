"""The `lore-active` command with all that it can do: the library's commands and the server's."""

from __future__ import annotations

from lore_active.cli import main
from server import (
    analysing,
    authoring,
    comparison,
    forgetting,
    importing,
    planning,
    serving,
    simulating,
)
from server.doctor.command import doctor
from server.reporting import command as reporting

__all__ = ["main"]

main.add_command(authoring.new)
main.add_command(authoring.check)
main.add_command(authoring.password)
main.add_command(doctor)
main.add_command(serving.serve)
main.add_command(serving.demo)
main.add_command(analysing.export)
main.add_command(importing.command)
main.add_command(analysing.again)
main.add_command(forgetting.forget)
main.add_command(planning.command)
main.add_command(simulating.command)
main.add_command(reporting.command)
main.add_command(comparison.command)

if __name__ == "__main__":
    main()
