"""The versions a program is meant for: several rules are right only for a range of them."""

from __future__ import annotations

from dataclasses import dataclass

#: The newest TensorFlow whose behaviour the rules were checked against, and the Keras that comes with it.
NEWEST = ((2, 21), (3, 15))


@dataclass(frozen=True, slots=True)
class Target:
    """TensorFlow and Keras versions as (major, minor), the Keras backend, and where they were learnt.

    `source` is ``setting``, a file's path, ``installed`` or ``newest known``. `legacy_keras` says that ``tf.keras`` is
    Keras 2 (TF ≤ 2.15, or ``TF_USE_LEGACY_KERAS``).
    """

    tensorflow: tuple[int, int] = NEWEST[0]
    keras: tuple[int, int] = NEWEST[1]
    backend: str = "tensorflow"
    source: str = "newest known"

    @property
    def legacy_keras(self) -> bool:
        """Whether ``keras`` means Keras 2."""
        return self.keras < (3, 0)

    @property
    def injects_prefetch(self) -> bool:
        """Whether tf.data adds a prefetch by itself (TF 2.11, measured by running 2.10.1 and 2.11.1)."""
        return self.tensorflow >= (2, 11)

    @property
    def parallelises_maps(self) -> bool:
        """Whether stateless maps are made parallel by the runtime (seen from TF 2.5.3 on, documented from 2.7)."""
        return self.tensorflow >= (2, 5)

    @property
    def on_tensorflow(self) -> bool:
        """Whether Keras runs on TensorFlow: on JAX or torch the rules on graphs do not apply."""
        return self.backend == "tensorflow"
