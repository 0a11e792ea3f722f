"""The monitor's figures as plain data: from rows of the store to what the pages draw."""
