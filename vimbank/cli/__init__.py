"""The ``vimbank`` command: parsing and drawing only; the work is MemoryService's."""
