"""The `lore-active` command with all that it can do: the library's commands and the server's."""

from __future__ import annotations

from lore_active.cli import COMMANDS, main

__all__ = ["main"]

COMMANDS.homes |= {
    "new": "server.authoring:new",
    "check": "server.authoring:check",
    "password": "server.authoring:password",
    "doctor": "server.doctor.command:doctor",
    "serve": "server.serving:serve",
    "demo": "server.serving:demo",
    "export": "server.analysing:export",
    "import": "server.importing:command",
    "replay": "server.analysing:again",
    "reset": "server.resetting:reset",
    "forget": "server.forgetting:forget",
    "recover": "server.recovering:recover",
    "plan": "server.planning:command",
    "simulate": "server.simulating:command",
    "report": "server.reporting.command:command",
    "compare": "server.comparison:command",
}

if __name__ == "__main__":
    main()
