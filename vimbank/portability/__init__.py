"""A user's memories out of VIMBank and back in: export, import, and erasure with its receipt."""
