"""Write the JSON schema of evidence files from the types that read and write them.

    python scripts/evidence_schema.py

`tests/trace/test_evidence.py` holds the file to the types. What the types cannot say (ranges, names of buckets) is
added here.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from tflint_gpu.trace.evidence import BUCKETS, SCHEMA, SCHEMA_FILE, Evidence

#: Figures that lie between 0 and 1 wherever they stand.
SHARES = ("share", "busy_share", "cpu_util", "gpu_util", "io_wait", "rising")


def schema() -> dict[str, Any]:
    """Return the schema of one evidence file."""
    (root,), types = msgspec.json.schema_components([Evidence], ref_template="#/$defs/{name}")
    for name, each in types.items():
        each["description"] = _plain(each.get("description", ""))
        each.pop("title", None)
        for key, figure in each.get("properties", {}).items():
            if key in SHARES or key.endswith("_share"):
                figure |= {"minimum": 0, "maximum": 1}
            if name == "Evidence" and key == "schema":
                figure["const"] = SCHEMA
    buckets = {bucket: {"type": "number", "minimum": 0} for bucket in BUCKETS}
    types["Step"]["properties"]["buckets"] = {
        "type": "object",
        "properties": buckets,
        "additionalProperties": {"type": "number"},
        "description": "Milliseconds by what the step does; they add up to step_ms.",
    }
    types["Evidence"]["properties"]["sources"]["additionalProperties"]["pattern"] = "^[0-9a-f]{32}$"
    types["Evidence"]["properties"]["lines"]["additionalProperties"]["pattern"] = "^([0-9a-f]{8})*$"
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Evidence of tflint-gpu",
        **root,
        "$defs": dict(sorted(types.items())),
    }


def _plain(text: str) -> str:
    """Return a docstring as one paragraph without the marks of its markup."""
    return re.sub(r"\s+", " ", text).replace("``", "`").strip()


def text() -> str:
    """Return the schema as the text of its file."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA_FILE.write_text(text(), encoding="utf-8")
