"""Looking after a study's data: erasing a participant, recovering a damaged study."""
