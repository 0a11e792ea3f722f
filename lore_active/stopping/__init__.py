"""When to stop: rules, their criteria, the verdict of a study, the forecast of its end."""
