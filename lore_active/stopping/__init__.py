"""When to stop: stopping rules and their criteria, a study's verdict, the forecast of its end."""
