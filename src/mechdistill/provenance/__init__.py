"""What made each artifact: code fingerprints and the record that every job leaves."""
