"""Philox: known answers, an oracle, and independence of tiles and devices."""

import dither
import dither.language as dl
import mode_oracle
import numpy as np
import pytest
from dither import CompileError

DEVICES = ["cpu", "sim:sm_80", "sim:sm_90a", "sim:sm_100a"]


def philox(key, counter, rounds=10):
    """Python's integers; `counter` of four words."""
    k, c = list(key), list(counter)
    for _ in range(rounds):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [q >> 32 ^ c[1] ^ k[0], q & 0xFFFFFFFF, p >> 32 ^ c[3] ^ k[1], p & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


#: Random123's known answers: key, counter, words.
KNOWN = [
    ((0, 0), (0, 0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((2**32 - 1,) * 2, (2**32 - 1,) * 4, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0xA4093822, 0x299F31D0),
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@dither.jit
def known(y, SEED: dl.constexpr, COUNTER: dl.constexpr):
    zero = dl.full((1, 16), 0, dl.int32)
    words = dl.philox(SEED, (zero + COUNTER[0], zero + COUNTER[1], zero + COUNTER[2], zero + COUNTER[3]))
    for i in dl.static_range(4):
        dl.store(y, (i, 0), words[i])


def signed(word):
    return word - 2**32 if word >= 2**31 else word


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("key", "counter", "words"), KNOWN)
def test_known_answers(key, counter, words, device):
    assert philox(key, counter) == list(words)
    y = np.zeros((4, 16), np.int32)
    known[1](y, SEED=key[1] << 32 | key[0], COUNTER=tuple(map(signed, counter)), device=device)
    assert (y.view(np.uint32) == np.array(words, np.uint32)[:, None]).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("seed", "offset", "group", "columnwise"),
    [(42, 7, 1, False), (0x123456789ABCDEF0, 2**32 + 3, 2**33 + 5, True), (-1, -2, 2**63 - 1, True)],
)
def test_words_of_groups(seed, offset, group, columnwise, device):
    """The random bits of SemanticsOfModes.md are those of dl.philox."""
    whole = (offset & 2**64 - 1) | group << 64 | int(columnwise) << 127
    counter = [whole >> 32 * i & 0xFFFFFFFF for i in range(4)]
    words = mode_oracle.words(seed, offset, group, columnwise)
    assert philox((seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF), counter) == words.tolist()
    y = np.zeros((4, 16), np.int32)
    known[1](y, SEED=seed, COUNTER=tuple(map(signed, counter)), device=device)
    assert (y.view(np.uint32) == words[:, None]).all()


@dither.jit
def positions(y, seed, ROWS: dl.constexpr, COLS: dl.constexpr):
    i, j = dl.program_id(0) * ROWS, dl.program_id(1) * COLS
    at = (dl.arange(ROWS)[:, None] + i) * 64 + (dl.arange(COLS)[None, :] + j)
    _, _, w, _ = dl.philox(seed, (at.to(dl.int32), 7))
    dl.store(y, (i, j), w)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("tile", [(1, 64), (8, 32), (4, 16)])
@pytest.mark.parametrize("seed", [0, -5, 0x123456789ABCDEF0])
def test_bits_depend_on_the_place_alone(seed, tile, device):
    y = np.zeros((16, 64), np.int32)
    positions[16 // tile[0], 64 // tile[1]](y, np.int64(seed), ROWS=tile[0], COLS=tile[1], device=device)
    key = seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF
    want = [philox(key, (at, 7, 0, 0))[2] for at in range(16 * 64)]
    assert (y.view(np.uint32).reshape(-1) == np.array(want, np.uint32)).all()


@dither.jit
def halves(a, b, low, high, low_unsigned):
    s, t = dl.load(a, (0, 0), (8, 64)), dl.load(b, (0, 0), (8, 64))
    dl.store(high, (0, 0), dl.mulhi(s, t))
    dl.store(low_unsigned, (0, 0), dl.umulhi(s, t))
    dl.store(low, (0, 0), s * t)


@pytest.mark.parametrize("device", DEVICES)
def test_products_of_64_bits(device):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-(2**31), 2**31, (8, 64)).astype(np.int32) for _ in range(2))
    a[0, :4], b[0, :4] = (-(2**31), -(2**31), -1, 2**31 - 1), (-(2**31), 1, -1, 2**31 - 1)
    low, high, unsigned = (np.zeros_like(a) for _ in range(3))
    halves[1](a, b, low, high, unsigned, device=device)
    whole = a.astype(np.int64) * b.astype(np.int64)
    assert (high == whole >> 32).all() and (low == whole.astype(np.int32)).all()
    whole = a.view(np.uint32).astype(np.uint64) * b.view(np.uint32).astype(np.uint64)
    assert (unsigned.view(np.uint32) == whole >> np.uint64(32)).all()


@dither.jit
def wrong(y, F: dl.constexpr):
    dl.store(y, (0, 0), F(dl.full((1, 16), 1, dl.int32)))


def floats(t):
    return dl.mulhi(t, t.to(dl.float32))


def long(t):
    return dl.umulhi(t, 2**32)


def five(t):
    return dl.philox(0, (t, t, t, t, t))[0]


def seed(t):
    return dl.philox(2**64, t)[0]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (floats, "b of dl.mulhi is a float32 tile of shape (1, 16), expected int32, or an integer of 32 bits"),
        (long, "b of dl.umulhi is 4294967296, expected int32, or an integer of 32 bits"),
        (five, "counter has 5 words, expected one to four"),
        (seed, "seed is 18446744073709551616, expected an integer of 64 bits"),
    ],
)
def test_wrong_operands(function, message):
    with pytest.raises(CompileError) as error:
        wrong[1](np.zeros((1, 16), np.int32), F=function)
    assert message in str(error.value)
