"""Distributions with entry points, as an installer lays them onto `sys.path`."""


def install(site, name, source, group, entries):
    """Write a module and the metadata of its distribution into a folder; `entries` are lines of the group."""
    (site / f"{name}.py").write_text(source)
    about = site / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("\n".join([f"[{group}]", *entries, ""]))
