"""Entry of the child process: ``python start.py JOB.json`` runs the job's script under watch."""

import importlib.util
import os
import sys

NAME = "_tflint_gpu_probe"


def load_probe():
    """Import the folder of this file as the package `NAME`, whatever else is on ``sys.path``."""
    folder = os.path.dirname(os.path.abspath(__file__))
    spec = importlib.util.spec_from_file_location(
        NAME, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    package = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = package
    spec.loader.exec_module(package)
    return importlib.import_module(NAME + ".main")


if __name__ == "__main__":
    # Python put this folder first on the path; the script must find its own modules there instead.
    del sys.path[0]
    load_probe().run(sys.argv[1])
