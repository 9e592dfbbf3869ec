"""The report of a joined study: its members' tables side by side, in the paper's order."""
