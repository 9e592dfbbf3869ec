"""Export of a finished study as a Workflow Run RO-Crate: files, records and code in one folder."""
