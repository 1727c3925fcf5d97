"""The model of an SM against cases that are computed by hand: each limit alone."""

import dataclasses
import itertools

import pytest
from dither.predict import GPUS, find, occupancy, of_target, predict
from dither.predict.model import copy_work
from dither.predict.work import Work, of_json, to_json

#: 10 SMs, each with 64 bytes and one clock a ns; nothing but the latency of memory takes time of its own.
PLAIN = dataclasses.replace(
    GPUS["H100"],
    sms=10,
    clock=1.0,
    clock_share=1.0,
    bandwidth=640.0,
    copy_share=1.0,
    latency=500.0,
    start=0.0,
    launch=0.0,
    ipc=1.0,
    efficiency=1.0,
    barrier=0.0,
    drain=0.0,
)


def work(**changes):
    """Blocks of 4 warps that move 4096 bytes in and as many out, in 128 ns of an SM, by few instructions."""
    same = {"kernel": "k", "source": "sass", "threads": 128, "registers": 32, "shared": 0, "minimum": 8192.0}
    moved = {"loaded": 4096.0, "stored": 4096.0, "batch": 4096.0, "waits": 1.0, "memory_waits": 1.0, "barriers": 0.0}
    done = {"blocks": 100_000, "instructions": 64.0, "pipes": {}, "prologue": 0.0}
    return Work(**{**same, **moved, **done, **changes})


@pytest.mark.parametrize("name", GPUS)
@pytest.mark.parametrize("blocks", [1, 1000, 100_000])
def test_a_copy_is_as_fast_as_a_copy(name, blocks):
    found = predict(copy_work(blocks), GPUS[name])
    assert (found.speed, found.limited_by) == (1, "memory")
    assert found.steady == pytest.approx(1, abs=0.01)
    assert found.seconds == found.copy_seconds >= blocks * 16384 / GPUS[name].copy / 1e9


def test_bytes():
    """What is read twice: 12288 bytes take 192 ns."""
    found = predict(work(loaded=8192.0), PLAIN)
    assert found.steady == found.limits["bytes"] == pytest.approx(128 / 192)
    assert (found.limited_by, found.speed) == ("bytes", pytest.approx(128 / 192, rel=0.01))


def test_issue():
    """1024 instructions of four schedulers take 256 ns."""
    found = predict(work(instructions=1024.0), PLAIN)
    assert found.limits["issue"] == pytest.approx(0.5)
    assert (found.limited_by, found.steady) == ("issue", pytest.approx(0.5, rel=0.02))


@pytest.mark.parametrize(("pipe", "count"), [("alu", 512), ("fma", 1024), ("xu", 128), ("shuffle", 256), ("lsu", 256)])
def test_pipes(pipe, count):
    """Each takes 256 ns: 32 lanes at 64, 128, 16 and 32 a clock, and a wavefront each clock."""
    found = predict(work(instructions=600.0, pipes={pipe: count}), PLAIN)
    if pipe == "fma":  # as many instructions as the schedulers issue by then
        found = predict(work(instructions=1024.0, pipes={pipe: count}), PLAIN)
    assert found.limits[pipe] == pytest.approx(0.5)
    assert found.steady == pytest.approx(0.5, rel=0.02)
    assert found.limited_by in (pipe, "issue") if pipe == "fma" else found.limited_by == pipe


def test_latency():
    """One block at a time: 64 ns of loads, 500 of latency, 16 of instructions; the next one's loads wait for 64 ns of
    stores."""
    alone = work(shared=200 << 10)
    assert occupancy(alone, PLAIN.sm).blocks == 1
    found = predict(alone, PLAIN)
    assert found.steady == pytest.approx(128 / (64 + 500 + 16 + 64), rel=0.001)
    assert found.limits["latency"] == pytest.approx(128 / (64 + 500 + 16), rel=0.001)
    assert (found.limited_by, found.in_flight) == ("latency", 4096)
    # 500 ns of the SM's 64 bytes a ns, of which half are loaded.
    assert found.needed == 500 * 64 / 2
    waits = predict(dataclasses.replace(alone, waits=3.0), PLAIN)
    assert waits.steady == pytest.approx(128 / (64 + 500 + 16 + 64 + 2 * PLAIN.l2_latency), rel=0.001)


def test_what_each_block_waits_for():
    slow = dataclasses.replace(PLAIN, start=100.0, barrier=30.0, drain=50.0)
    found = predict(work(shared=200 << 10, barriers=2.0), slow)
    assert found.steady == pytest.approx(128 / (64 + 500 + 16 + 100 + 2 * 30 + 50), rel=0.001)


def test_one_block_more_than_a_wave():
    """10 SMs of one block each: the eleventh block takes as long as the ten."""
    alone = work(shared=200 << 10)
    wave, more = (predict(alone.on_grid(n), PLAIN) for n in (10, 11))
    assert wave.seconds == pytest.approx((580 + 64) / 1e9)
    assert more.seconds == pytest.approx(2 * (580 + 64) / 1e9)
    assert (wave.waves, more.waves) == (1, 1.1)
    assert more.tail > wave.tail
    assert more.speed < 0.6 * wave.speed
    assert predict(alone.on_grid(10_000), PLAIN).tail < 0.01


def test_what_is_fetched_a_round_before_costs_what_is_left_of_its_wait():
    """A block by itself: 100 instructions of a warp in 100 ns, 500 of memory, and four waits for L2 of 300 ns. Loads
    that are made 20 instructions before their use leave 280 of them."""
    gpu = dataclasses.replace(PLAIN, l2_latency=300.0)
    one = work(blocks=10, instructions=400.0, waits=5.0, loaded=640.0, stored=0.0, minimum=640.0, batch=640.0)
    stopped = predict(one, gpu).seconds * 1e9
    assert stopped == pytest.approx(100 + 500 + 4 * 300 + 10, rel=1e-6)
    ahead = predict(dataclasses.replace(one, fetched=4.0, ahead=20.0), gpu).seconds * 1e9
    assert ahead == pytest.approx(stopped - 4 * 20, rel=1e-6)
    # No more than a round.
    most = predict(dataclasses.replace(one, fetched=4.0, ahead=90.0), gpu).seconds * 1e9
    assert most == pytest.approx(stopped - 4 * 20, rel=1e-6)
    # Loads from memory alike, whose bytes go through the queue: what it takes is hidden as well.
    memory = dataclasses.replace(one, memory_waits=5.0, loaded=3200.0, minimum=3200.0)
    stopped = predict(memory, gpu).seconds * 1e9
    assert stopped == pytest.approx(100 + 5 * 500 + 50, rel=1e-6)
    ahead = predict(dataclasses.replace(memory, fetched=4.0, fetched_memory=4.0, ahead=20.0), gpu).seconds * 1e9
    assert ahead == pytest.approx(stopped - 4 * 20, rel=1e-6)
    # Where blocks hide all of that from each other, it is no slower.
    many = dataclasses.replace(one, blocks=100_000, loaded=4096.0, minimum=4096.0)
    assert predict(dataclasses.replace(many, fetched=4.0, ahead=20.0), gpu).seconds <= predict(many, gpu).seconds


def test_a_last_wave_is_what_limits():
    """Eleven blocks of a MiB: one SM has two of them, 32 us, where a copy of all by ten takes 18."""
    found = predict(work(loaded=2.0**20, minimum=2.0**20 + 4096, batch=2.0**20, blocks=11), PLAIN)
    assert (found.limited_by, found.steady) == ("grid", pytest.approx(1, abs=0.03))
    assert found.speed == pytest.approx(11 / 20, abs=0.03)


@pytest.mark.parametrize(
    ("changes", "gpu", "blocks", "limit"),
    [
        # 80 registers: 2560 a warp, 6 warps of each of 4 schedulers' 16384.
        ({"registers": 80}, "H100", 6, "registers"),
        ({"registers": 140, "threads": 256}, "H200", 1, "registers"),
        ({"registers": 32}, "B200", 16, "threads"),
        ({"registers": 32}, "RTX5090", 12, "threads"),
        ({"threads": 32, "registers": 16}, "A100", 32, "blocks"),
        ({"threads": 32, "registers": 16}, "RTX5090", 24, "blocks"),
        # 33 KiB with the 1 KiB that each block has for itself.
        ({"shared": 32 << 10}, "H100", 6, "shared memory"),
        ({"shared": 32 << 10}, "RTX5090", 3, "shared memory"),
        # Not known: it limits nothing.
        ({"registers": 0}, "H100", 16, "threads"),
    ],
)
def test_occupancy(changes, gpu, blocks, limit):
    found = occupancy(work(**changes), GPUS[gpu].sm)
    assert (found.blocks, found.limit) == (blocks, limit)


def test_no_room():
    with pytest.raises(ValueError, match=r"kernel 'k' has blocks of 1024 threads, 128 registers .* registers$"):
        predict(work(threads=1024, registers=128), PLAIN)
    with pytest.raises(ValueError, match="kernel 'k' moves no bytes"):
        predict(work(minimum=0.0), PLAIN)


def kernels():
    """Light and heavy ones, in one wait and in several."""
    for instructions in (200.0, 1500.0, 6000.0):
        for waits, loaded in ((1.0, 4096.0), (4.0, 32768.0)):
            yield work(
                instructions=instructions,
                waits=waits,
                loaded=loaded,
                minimum=loaded + 4096,
                barriers=waits,
                blocks=5000,
            )


@pytest.mark.parametrize("name", ["H200", "RTX5090"])
def test_more_is_never_faster(name):
    """Of registers, of instructions, bytes and barriers."""
    for kernel in kernels():
        sizes = [dataclasses.replace(kernel, registers=n) for n in (24, 64, 80, 96, 168, 255)]
        times = [predict(one, GPUS[name]).seconds for one in sizes]
        assert all(b >= a for a, b in itertools.pairwise(times)), times
        base = predict(kernel, GPUS[name]).seconds
        for more in ("instructions", "stored", "barriers"):
            slower = dataclasses.replace(kernel, **{more: 2 * getattr(kernel, more)})
            assert predict(slower, GPUS[name]).seconds >= 0.99 * base, more


def test_names():
    assert find("NVIDIA H100 80GB HBM3") is find("h100") is GPUS["H100"]
    assert find("NVIDIA GeForce RTX 5090") is find("RTX 5090") is GPUS["RTX5090"]
    with pytest.raises(ValueError, match="found GPU 'H20', expected one of A100, H100, H200, B200, RTX5090; did you"):
        find("H20")
    assert [gpu.name for gpu in of_target("sm_90a")] == ["H100", "H200"]


def test_files():
    kernel = work(pipes={"alu": 3.5})
    assert of_json(to_json(kernel)) == kernel
    with pytest.raises(ValueError, match="found a kernel's work with blocks, expected ahead, barriers, batch"):
        of_json({"blocks": 1})
    # Files from before there was a count of what is fetched.
    older = {
        name: value for name, value in to_json(kernel).items() if name not in ("fetched", "fetched_memory", "ahead")
    }
    assert of_json(older) == kernel
