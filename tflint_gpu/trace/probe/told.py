"""What the run tells its parent, in files of JSON."""

import json
import os


def tell(path, what):
    """Write `what` to the file `path`, so that a reader sees all of it or nothing."""
    draft = path + ".part"
    with open(draft, "w", encoding="utf-8") as file:
        json.dump(what, file)
    os.replace(draft, path)
