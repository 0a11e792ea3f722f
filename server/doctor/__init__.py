"""`lore-active doctor`: is this machine fit for a study? Each module looks at one part of it."""
