"""Former names of keys and options, and their present names."""

RENAMED = {
    "model.alike": "model.flavor_symmetric",
    "collisions.pairs": "collisions.pair_sampling",
    "collisions.sampling": "collisions.kinematics",
    "time.doublings": "time.regrid_times",
    "coefficients.nodes": "coefficients.on_grid",
}


def renamed_key(path: str) -> str | None:
    """Return the present name of a key such as "collisions.pairs"; None if it has not changed."""
    return RENAMED.get(path)


def renamed_option(option: str) -> str | None:
    """Return the present name of a keyword argument such as pairs; None if it has not changed."""
    for former, present in RENAMED.items():
        if former.partition(".")[2] == option:
            return present.partition(".")[2]
    return None
