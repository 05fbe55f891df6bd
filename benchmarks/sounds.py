"""Features of synthetic sounds for keyword spotters: vowels and hisses within a second.

The features follow MLPerf Tiny: at 16 kHz 49 frames of 30 ms, every 20 ms; 40 mel bands of 20 to
4000 Hz, their natural logarithm, and the first ten coefficients of its cosine transform.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

RATE, FRAME, STEP, POINTS, BANDS, KEPT = 16_000, 480, 320, 512, 40, 10
VOWEL = 0.65  # the share of sounds that are none of a hiss
FORMANTS = ((300, 900, 2200), (900, 2200, 3000))  # Hz, from and to
HARMONICS = np.arange(1, 30)[:, None]

Array = npt.NDArray[np.float64]


def features(seed: int) -> Array:
    """(49, 10)."""
    frames = np.lib.stride_tricks.sliding_window_view(_sound(seed), FRAME)[::STEP]
    spectrum = np.abs(np.fft.rfft(frames * np.hanning(FRAME), POINTS))
    bands = np.log(spectrum @ _filters() + 1e-6)
    places = np.pi * np.arange(KEPT)[:, None] * (np.arange(BANDS) + 0.5) / BANDS
    found: Array = bands @ (np.cos(places) * np.sqrt(2 / BANDS)).T
    return found


def _sound(seed: int) -> Array:
    """A second, between -1 and 1."""
    rng, time = np.random.default_rng(seed), np.arange(RATE) / RATE
    sound = 10 ** rng.uniform(-4, -2.5) * rng.normal(size=RATE)
    for _ in range(rng.integers(2, 5)):
        begin, length = rng.uniform(0.1, 0.6), rng.uniform(0.08, 0.3)
        inside = np.clip(np.minimum(time - begin, begin + length - time) / 0.02, 0, 1)
        made = (
            _vowel(rng, time) if rng.random() < VOWEL else 0.3 * np.diff(rng.normal(size=RATE + 1))
        )
        sound += 10 ** rng.uniform(-1.5, -0.3) * inside * made
    sound[int(RATE * rng.uniform(0.7, 1.3)) :] = 0.0  # a short recording is filled up with zeros
    return np.clip(sound, -1, 1)


def _vowel(rng: np.random.Generator, time: Array) -> Array:
    pitch = rng.uniform(90, 260) * (1 + 0.1 * np.sin(6 * np.pi * time))
    far = (HARMONICS * pitch[0] - rng.uniform(*FORMANTS)) / 120
    loudness = np.exp(-(far**2)).sum(1, keepdims=True)
    found: Array = (loudness * np.sin(HARMONICS * 2 * np.pi * np.cumsum(pitch) / RATE)).sum(0)
    return found


def _hiss(rng: np.random.Generator) -> Array:
    return 0.3 * np.diff(rng.normal(size=RATE + 1))


def _filters() -> Array:
    """(frequencies, bands): triangles, of equal width in mel."""
    lowest, highest = _mel(np.array([20.0, 4000.0]))
    edges = np.linspace(lowest, highest, BANDS + 2)
    at = _mel(np.fft.rfftfreq(POINTS, 1 / RATE).astype(np.float64))[:, None]
    low, middle, high = edges[:-2], edges[1:-1], edges[2:]
    slopes = np.minimum((at - low) / (middle - low), (high - at) / (high - middle))
    return np.maximum(0.0, slopes)


def _mel(hertz: Array) -> Array:
    return 1127 * np.log1p(hertz / 700)
