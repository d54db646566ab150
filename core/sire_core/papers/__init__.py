"""Methods of papers, a room each; they use the kernel through `sire_core.extend`."""
