"""A context tells from its outer one what walking all its frames would tell."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tflint_gpu.findings import Location
from tflint_gpu.program.context import REGIONS, Context, Frame, Guard, Loop, Region, Scope

HERE = Location("train.py", 1, 1, 1, 2)

frames = st.one_of(
    st.builds(Loop, st.just(HERE), st.just("for")),
    st.builds(Guard, st.just(HERE), st.sampled_from(["branch", "debug", "periodic"])),
    st.builds(Scope, st.just(HERE), st.sampled_from(["device", "tape"])),
    st.builds(Region, st.just(HERE), st.sampled_from(sorted(REGIONS)), st.booleans()),
    st.builds(Frame, st.just(HERE)),
)


@given(st.lists(frames, max_size=12), st.lists(st.integers(0, 12), max_size=4))
def test_facts_are_those_of_the_frames(made: list[Frame], asked: list[int]) -> None:
    chain = [Context()]
    for frame in made:
        chain.append(chain[-1].inside(frame))
    for number in asked:  # asked or not on the way, the answer is the same
        assert chain[min(number, len(made))].debug in (True, False)
    context = chain[-1]
    inner = list(context)
    near = list(context.frames())
    until_loop = next((index for index, frame in enumerate(near) if isinstance(frame, Loop)), len(near))

    assert inner == made[::-1]
    assert context.all_loops == tuple(frame for frame in inner if isinstance(frame, Loop))
    assert context.loops == tuple(frame for frame in near if isinstance(frame, Loop))
    assert context.all_guards == tuple(frame for frame in inner if isinstance(frame, Guard))
    assert context.guards == tuple(frame for frame in near[:until_loop] if isinstance(frame, Guard))
    assert context.regions == tuple(frame.kind for frame in inner if isinstance(frame, Region))
    assert context.region == next(iter(context.regions), "")
    assert context.debug == any(isinstance(frame, Guard) and frame.kind == "debug" for frame in inner)
    assert context.scope("tape") == next((f for f in inner if isinstance(f, Scope) and f.kind == "tape"), None)
    assert context.in_graph == any(
        isinstance(frame, Region)
        and (frame.kind in ("graph", "dataset") or (frame.kind in TRACED and not frame.eager))
        for frame in inner
    )


TRACED = ("model", "loss", "train-step", "test-step")


def test_a_chain_deeper_than_python_recurses_has_facts() -> None:
    context = Context()
    for _ in range(5000):
        context = context.inside(Guard(HERE, "branch"))

    assert len(context.all_guards) == 5000
    assert not context.debug
