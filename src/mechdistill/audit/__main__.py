"""`python -m mechdistill.audit STUDY`: the same as `mechdistill audit STUDY`."""

from mechdistill.command import audit_alone

if __name__ == "__main__":
    audit_alone()
