"""SQLite as used by the store: connections, files, migrations, the writer, errors."""
