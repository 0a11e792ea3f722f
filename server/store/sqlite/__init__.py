"""SQLite as the store uses it: connections, files, migrations, the writer, errors by name."""
