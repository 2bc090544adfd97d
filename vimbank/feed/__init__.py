"""The write path to the indexes: they follow the store's feed, are snapshotted, and are rebuilt when in doubt."""
