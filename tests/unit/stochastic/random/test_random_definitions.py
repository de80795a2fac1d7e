"""Hashes, generators and normal numbers compared with other implementations: CPython's, and one number at a time."""

import hashlib
import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest

from cobre.stochastic.random.pcg64 import Pcg64Streams, standard_normals
from cobre.stochastic.random.point_sets import choose
from cobre.stochastic.random.seeds import forward_seeds, opening_seeds, siphash13_bytes

MASK_32, MASK_64, MASK_128 = 2**32 - 1, 2**64 - 1, 2**128 - 1
MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
HASH_ALL = "import json, sys; print(json.dumps([hash(bytes.fromhex(text)) for text in sys.argv[1:]]))"


@pytest.mark.skipif(sys.hash_info.algorithm != "siphash13", reason="this Python hashes bytes in another way")
def test_hashes_equal_python():
    """CPython hashes bytes by SipHash-1-3 too, with keys of zero when it is asked not to draw them."""
    messages = [bytes((31 * at + length) % 256 for at in range(length)) for length in range(1, 41)]
    command = [sys.executable, "-c", HASH_ALL, *(message.hex() for message in messages)]
    printed = subprocess.check_output(command, text=True, timeout=60, env={**os.environ, "PYTHONHASHSEED": "0"})
    assert [siphash13_bytes(message) for message in messages] == [number & MASK_64 for number in json.loads(printed)]


class Generator:
    """PCG64 on Python integers; the seed becomes 256 bits by eight steps of a 32-bit PCG."""

    def __init__(self, seed):
        words = []
        for _ in range(8):
            seed = (seed * 6364136223846793005 + 11634580027462260723) & MASK_64
            folded, turn = ((seed >> 18 ^ seed) >> 27) & MASK_32, seed >> 59
            words.append((folded >> turn | folded << (32 - turn)) & MASK_32)
        state, increment = (sum(word << 32 * at for at, word in enumerate(words[part : part + 4])) for part in (0, 4))
        self.increment = increment | 1
        self.state = ((state + self.increment) * MULTIPLIER + self.increment) & MASK_128

    def bits(self):
        self.state = (self.state * MULTIPLIER + self.increment) & MASK_128
        folded, turn = (self.state >> 64 ^ self.state) & MASK_64, self.state >> 122
        return (folded >> turn | folded << (64 - turn)) & MASK_64

    def open_unit(self):
        """Return a number strictly between 0 and 1."""
        return (2 * (self.bits() >> 12) + 1) / 2**53

    def choice(self, count):
        """Return the integer part of count times a 32-bit fraction, extended if it is just below an integer."""
        product = (self.bits() & MASK_32) * count
        if product & MASK_32 > 2**32 - count:
            product += (self.bits() & MASK_32) * count >> 32
        return product >> 32


def density(x):
    return math.exp(-x * x / 2)


class Ziggurat:
    """256 layers of one area under the density of a normal number, the lowest with the tail (Marsaglia and Tsang)."""

    TAIL, AREA = 3.654152885361009, 0.00492867323399

    def __init__(self):
        edges = [self.AREA / density(self.TAIL), self.TAIL]
        while len(edges) < 256:
            edges.append(math.sqrt(-2 * math.log(self.AREA / edges[-1] + density(edges[-1]))))
        # The published tables have 18 decimals.
        self.edges = [round_to_18(edge) for edge in [*edges, 0.0]]
        self.heights = [round_to_18(density(edge)) for edge in [*edges, 0.0]]
        self.ways = dict.fromkeys(("inside", "edge", "refused", "tail"), 0)

    def normal(self, generator):
        while True:
            bits = generator.bits()
            layer, unit = bits & 0xFF, (bits >> 12) / 2**51 - 1.0
            x = unit * self.edges[layer]
            if abs(x) < self.edges[layer + 1]:
                return self.count_branch("inside", x)
            if layer == 0:
                return self.count_branch("tail", math.copysign(self.beyond_tail(generator), unit))
            low, high = self.heights[layer + 1], self.heights[layer]
            if low + (high - low) * ((generator.bits() >> 11) / 2**53) < density(x):
                return self.count_branch("edge", x)
            self.count_branch("refused", x)

    def beyond_tail(self, generator):
        while True:
            x = math.log(generator.open_unit()) / self.TAIL
            y = math.log(generator.open_unit())
            if -2 * y >= x * x:
                return self.TAIL - x

    def count_branch(self, way, x):
        self.ways[way] += 1
        return x


def round_to_18(value):
    return float(f"{value:.18f}")


def test_normals_equal_scalar_implementation():
    seeds, ziggurat = opening_seeds(2024, np.arange(4_000), 1), Ziggurat()
    expected = []
    for seed in seeds.tolist():
        generator = Generator(seed)
        expected.append([ziggurat.normal(generator) for _ in range(3)])
    assert standard_normals(Pcg64Streams(seeds), 3).tolist() == expected
    assert min(ziggurat.ways.values()) > 0, ziggurat.ways


@pytest.mark.parametrize("count", [1, 3, 10, 2**31 + 11])
def test_choices_equal_scalar_implementation(count):
    seeds = forward_seeds(7, 3, np.arange(1_000), 2)
    expected = [Generator(seed).choice(count) for seed in seeds.tolist()]
    assert choose(Pcg64Streams(seeds), count).tolist() == expected


ONE_PASS_EACH = [(iteration, 0) for iteration in range(1, 6)]
FOUR_PASSES = [(1, 0), (1, 1), (1, 2), (1, 3), (2, 0)]


@pytest.mark.parametrize(
    ("stages", "plants", "passes", "digest"),
    [(4, 1, ONE_PASS_EACH, "15e7764ca18333fc"), (12, 4, FOUR_PASSES, "3f39b458dae31492")],
)
def test_openings_and_choices_equal_cobre_python(stages, plants, passes, digest):
    """Compare with digests of what cobre-rs drew with seed 42 for two of its cases: openings, and choices of passes."""
    openings = [
        standard_normals(Pcg64Streams(opening_seeds(42, np.arange(10), stage)), plants) for stage in range(stages)
    ]
    taken = [choose(Pcg64Streams(forward_seeds(42, *one, np.arange(stages))), 10) for one in passes]
    whole = b"".join(array.tobytes() for array in [*openings, *taken])
    assert hashlib.sha256(whole).hexdigest()[:16] == digest
