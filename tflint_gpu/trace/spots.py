"""Lines of the user's source, as evidence names them."""

from __future__ import annotations

from dataclasses import dataclass

from tflint_gpu.findings import Location


@dataclass(frozen=True)
class Spot:
    """A line of the user's source; `path` relative to the folder the trace was started in."""

    path: str
    line: int
    cell: int | None = None
    function: str = ""


def touches(spot: Spot | None, location: Location) -> bool:
    """Say whether `spot` lies on the lines of `location`."""
    return (
        spot is not None
        and spot.path == location.path
        and spot.cell == location.cell
        and location.line <= spot.line <= location.end_line
    )
