"""Spoken-like words from seeds, and how an answer is scored.

A word is three vowels. A vowel has the harmonics of a pitch; those near two formants are loud.
Pitch, tempo, start, loudness and noise are random. The model hears 32 mel bands of 32 frames of
32 ms, in decibels below the loudest, divided by 40, plus 1.
"""

from __future__ import annotations

import numpy as np
from numpy.random import RandomState

METRIC = "top-1, %"
RATE, FRAME, BANDS, FRAMES = 8000, 256, 32, 32
# Formants in Hz (Peterson and Barney 1952, men): the vowels of heed, had, hod, who'd and heard.
VOWELS = {"i": (270, 2290), "a": (660, 1720), "o": (730, 1090), "u": (300, 870), "e": (490, 1350)}
WORDS = ("iao", "oai", "uie", "aou", "eiu", "iou", "oea", "uae")
CHANCE = 100 / len(WORDS)


def sample(seed: int) -> tuple[np.ndarray, int]:
    """Features float32 (1, 1, BANDS, FRAMES), and the index of the word."""
    random = RandomState(seed)
    word = int(random.randint(len(WORDS)))
    sound = spoken(WORDS[word], random)
    noise = random.randn(len(sound)) * 10 ** random.uniform(-1.9, -0.5)
    return features(sound + noise), word


def spoken(word: str, random: RandomState) -> np.ndarray:
    """A second of a word at RATE, (RATE,), with a loudness of at most 1."""
    lengths = (RATE * random.uniform(0.14, 0.26, len(word))).astype(int)
    pitch = random.uniform(90, 240) * np.cumprod(random.uniform(0.9, 1.1, len(word)))
    formants = [np.array(VOWELS[vowel]) * random.uniform(0.9, 1.12) for vowel in word]
    pieces = [vowel(*p) for p in zip(lengths, pitch, formants, strict=True)]
    voice = np.concatenate(pieces)[:RATE]
    sound = np.zeros(RATE)
    start = random.randint(0, RATE - len(voice) + 1)
    sound[start : start + len(voice)] = voice * random.uniform(0.3, 1.0)
    return sound


def vowel(length: int, pitch: float, formants: np.ndarray) -> np.ndarray:
    time = np.arange(length) / RATE
    frequencies = pitch * np.arange(1, int(RATE / 2 / pitch))
    distance = (frequencies[:, None] - formants) / (60 + 0.06 * formants)
    loudness = (np.exp(-0.5 * distance**2) * [1.0, 0.6]).sum(1) + 0.01
    waves = loudness[:, None] * np.sin(2 * np.pi * frequencies[:, None] * time)
    return waves.sum(0) / loudness.sum() * np.hanning(length)


def features(sound: np.ndarray) -> np.ndarray:
    step = (len(sound) - FRAME) // (FRAMES - 1)
    frames = np.stack([sound[step * k : step * k + FRAME] for k in range(FRAMES)])
    power = np.abs(np.fft.rfft(frames * np.hanning(FRAME), axis=1)) ** 2
    levels = 10 * np.log10(power @ mel_filters() + 1e-10)
    normalized = (levels - levels.max()) / 40 + 1
    return np.maximum(normalized, -1).T[None, None].astype(np.float32)


def mel_filters() -> np.ndarray:
    """Triangles on the mel scale, (FRAME // 2 + 1, BANDS)."""
    hertz = np.linspace(0, RATE / 2, FRAME // 2 + 1)
    mels = 2595 * np.log10(1 + hertz / 700)
    centers = np.linspace(0, mels[-1], BANDS + 2)
    rising = (mels[:, None] - centers[:-2]) / (centers[1:-1] - centers[:-2])
    falling = (centers[2:] - mels[:, None]) / (centers[2:] - centers[1:-1])
    return np.clip(np.minimum(rising, falling), 0, None)


def score(output: np.ndarray, word: int) -> float:
    return 100.0 * (int(np.argmax(output)) == word)


def picture(inputs: np.ndarray, output: np.ndarray, word: int) -> np.ndarray:
    """What the model hears, uint8 (BANDS, FRAMES, 3), low frequencies at the bottom."""
    gray = np.uint8(255 * (inputs[0, 0, ::-1] + 1) / 2)
    return np.stack([gray, gray, gray], -1)


def caption(output: np.ndarray, word: int) -> str:
    return f"{WORDS[int(np.argmax(output))]} ({WORDS[word]})"
