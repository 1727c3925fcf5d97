"""The IR builder of the extension: what it builds, and that misuse raises and never crashes."""

import random

import pytest
from dither import _dither

MEMREF = "memref<?x64xf32, strided<[?, 1]>>"


@pytest.fixture
def module():
    return _dither.Module()


def begin(module):
    """A builder inside a function with a memref, and its argument."""
    builder = _dither.Builder(module)
    (x,) = builder.begin_function("f", [("x", MEMREF, {"quant.align": 16})], {"quant.kernel": True}, ("k.py", 3, 5))
    return builder, x


def error(call, *args, **kwargs):
    with pytest.raises(_dither.IRError) as info:
        call(*args, **kwargs)
    return info.value


def test_function_and_values(module):
    builder, x = begin(module)
    zero = builder.constant("index", 0, ("k.py", 4, 1))
    (tile,) = builder.create("quant.load", [x, zero, zero], None, ("k.py", 4, 9), ["tensor<2x64xf32>"])
    tile.set_name("t")
    (total,) = builder.create("quant.reduce", [tile], {"kind": "#quant<reduce_kind sum>", "axis": 1})
    builder.end_function()
    module.verify()
    assert (x.type, x.shape, x.rank, x.dtype, x.is_shaped) == (MEMREF, (None, 64), 2, "f32", True)
    assert (zero.type, zero.dtype, zero.is_shaped) == ("index", "index", False)
    assert (total.type, total.shape) == ("tensor<2x1xf32>", (2, 1))
    assert repr(total) == "<Value tensor<2x1xf32>>"
    assert module.text() == str(module)
    assert str(module).splitlines()[1:-1] == [
        f"  func.func @f(%x: {MEMREF} {{quant.align = 16 : i64}}) attributes {{quant.kernel}} {{",
        "    %c0 = arith.constant 0 : index",
        f"    %t = quant.load %x[%c0, %c0] : {MEMREF} -> tensor<2x64xf32>",
        "    %0 = quant.reduce sum %t axis 1 : tensor<2x64xf32> -> tensor<2x1xf32>",
        "    return",
        "  }",
    ]


def test_text_and_parse_agree(module):
    builder, _ = begin(module)
    builder.end_function()
    module.set_attribute("quant.target", '"sm_90a"')
    again = _dither.Module.parse(module.text())
    assert again.text() == module.text().replace("%x", "%arg0")  # text holds no names
    assert again.text().startswith('module attributes {quant.target = "sm_90a"} {\n')


def test_locations_of_inlined_calls(module):
    builder, _ = begin(module)
    builder.constant("f32", 1.0, [("h.py", 2, 3), ("k.py", 7, 9)])
    builder.end_function()
    assert 'loc(callsite("h.py":2:3 at "k.py":7:9))' in module.text(locations=True)


def test_loop_and_branch(module):
    builder, _ = begin(module)
    low, high = builder.constant("index", 0), builder.constant("index", 4)
    start = builder.constant("tensor<4xf32>", 1.5)
    i, carried = builder.begin_for(low, high, high, [start])
    (flag,) = builder.create("arith.cmpi", [i, low], {"predicate": 2})
    builder.begin_if(flag)
    (twice,) = builder.create("arith.addf", [carried, carried])
    builder.select_branch(1)
    (chosen,) = builder.end_if([twice], [carried])
    (result,) = builder.end_for([chosen])
    builder.begin_if(builder.constant("i1", True))
    assert builder.end_if([], []) == []
    builder.end_function()
    module.verify()
    assert result.type == "tensor<4xf32>"
    assert "else" not in str(module).split("scf.if")[2]


def test_a_branch_without_effects_goes_in_line(module):
    builder, _ = begin(module)
    a, b = builder.constant("i32", 1), builder.constant("i32", 2)
    (flag,) = builder.create("arith.cmpi", [a, b], {"predicate": 2})
    builder.begin_if(flag)
    (twice,) = builder.create("arith.addi", [a, a])
    builder.select_branch(1)
    (square,) = builder.create("arith.muli", [b, b])
    assert builder.inline_if()
    builder.create("arith.select", [flag, twice, square])
    builder.end_function()
    module.verify()
    text = str(module)
    assert "scf.if" not in text
    assert text.index("arith.addi") < text.index("arith.muli") < text.index("arith.select")


@pytest.mark.parametrize("inner", ["store", "branch"])
@pytest.mark.parametrize("side", [0, 1])
def test_a_branch_with_effects_stays(module, side, inner):
    builder, x = begin(module)
    zero = builder.constant("index", 0)
    tile = builder.constant("tensor<4x128xf32>", 1.0)
    flag = builder.constant("i1", True)
    builder.begin_if(flag)
    builder.select_branch(side)
    if inner == "store":
        builder.create("quant.store", [tile, x, zero, zero], {"operandSegmentSizes": "array<i32: 1, 1, 2, 0>"})
    else:
        builder.begin_if(flag)
        builder.end_if([], [])
    assert not builder.inline_if()
    builder.end_if([], [])
    builder.end_function()
    module.verify()
    assert "scf.if" in str(module)


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        ("f32", 1e-5, "arith.constant 9.99999974E-6 : f32"),
        ("f32", 3, "arith.constant 3.000000e+00 : f32"),
        ("f32", float("inf"), "arith.constant 0x7F800000 : f32"),
        ("bf16", 1.005859375, "arith.constant 1.007810e+00 : bf16"),
        ("i1", True, "arith.constant true"),
        ("i32", -5, "arith.constant -5 : i32"),
        ("index", 7, "arith.constant 7 : index"),
        ("tensor<2x3xi1>", False, "arith.constant dense<false> : tensor<2x3xi1>"),
        ("tensor<f32>", -0.0, "arith.constant dense<-0.000000e+00> : tensor<f32>"),
    ],
)
def test_constants(module, type_, value, text):
    builder, _ = begin(module)
    builder.constant(type_, value)
    builder.end_function()
    assert text in str(module)


@pytest.mark.parametrize(
    ("type_", "value", "message"),
    [
        ("i8", 300, "constant 300 does not fit i8"),
        ("i32", 1 << 70, "'constant' is 1180591620717411303424, expected a 64-bit integer"),
        ("i32", 1.5, "constant of type i32, expected an integer"),
        ("f32", "x", "constant of type f32, expected a number"),
        ("f32", None, "'constant' is None, expected attribute text or a number"),
        ("tensor<?xf32>", 1.0, "constant of type tensor<?xf32>, expected a static shape"),
        ("memref<f32>", 1.0, "constant of type memref<f32>, expected integers or floats"),
        ("f33", 1.0, "cannot read the type 'f33': "),
        ("i32 i32", 1, "cannot read the type 'i32 i32': "),
    ],
)
def test_bad_constants(module, type_, value, message):
    builder, _ = begin(module)
    assert error(builder.constant, type_, value).message.startswith(message)


def test_errors_of_create(module):
    builder, x = begin(module)
    tile = builder.constant("tensor<4x64xf32>", 1.0)
    create = builder.create
    assert str(error(create, "quant.nothing")) == "unknown operation 'quant.nothing'"
    assert str(error(create, "scf.if", [tile])) == "'scf.if' has regions or ends a block: it is not created by name"
    assert str(error(create, "func.return")) == "'func.return' has regions or ends a block: it is not created by name"
    assert "'ub.poison'" in str(error(create, "ub.poison", [], None, None, ["i32"]))
    assert str(error(create, "quant.reduce", [tile], {"kind": "#quant<reduce_kind sum>"})) == (
        "'quant.reduce' op has no attribute 'axis'"
    )
    assert str(error(create, "quant.reduce", [tile], {"axis": 1})) == "'quant.reduce' op requires attribute 'kind'"
    assert str(error(create, "quant.transpose", [x])) == (
        f"'quant.transpose' op source is '{MEMREF}', expected a ranked tensor"
    )
    assert str(error(create, "quant.transpose", [])) == "'quant.transpose' op has 0 operands, expected at least 1"
    assert "op operand #0 must be" in str(error(create, "quant.exp", [builder.constant("i32", 1)]))
    assert "op operand #0 must be" in str(error(create, "arith.addf", [x, x]))
    assert str(error(create, "arith.select", [tile])) == (
        "cannot infer the result types of 'arith.select' from operands (tensor<4x64xf32>)"
    )
    for name in ("quant.broadcast", "arith.extf", "memref.dim", "memref.load", "tensor.extract"):
        assert str(error(create, name, [x])) == f"'{name}' infers no result types, expected result_types"
    assert "cannot read the attribute 'no attribute'" in str(
        error(create, "quant.transpose", [tile], {"a": "no attribute"})
    )
    located = error(create, "quant.block_scale", [tile], {"axis": 5, "format": "#quant.format<mxfp4>"}, ("k.py", 8, 2))
    assert (located.file, located.line, located.col, located.callers) == ("k.py", 8, 2, [])
    assert located.message.endswith("axis 5 is out of range, expected 0 to 1 for a tensor of rank 2")
    calls = [("h.py", 1, 2), ("g.py", 3, 4), ("k.py", 5, 6)]
    located = error(create, "quant.block_scale", [tile], {"axis": 5, "format": "#quant.format<mxfp4>"}, calls)
    assert (located.file, located.line, located.col) == calls[0]
    assert located.callers == calls[1:]
    assert isinstance(located, ValueError)


def test_errors_leave_nothing_behind(module):
    builder, x = begin(module)
    tile = builder.constant("tensor<4x64xf32>", 1.0)
    error(builder.create, "arith.addf", [tile, x])
    error(builder.create, "arith.select", [builder.constant("tensor<4xi1>", True)] * 3, None, None, ["i1"])
    builder.end_function()
    module.verify()
    assert "addf" not in str(module)
    assert "select" not in str(module)


def test_misuse_of_scopes(module):
    builder = _dither.Builder(module)
    assert str(error(builder.constant, "f32", 1.0)) == "no function is open here"
    assert str(error(builder.create, "quant.program_id", [], {"dim": "#quant<dim x>"})) == "no function is open here"
    assert str(error(builder.end_function)) == "no function is open here"
    builder, x = begin(module)
    assert str(error(builder.begin_function, "g", [])) == "a function is open already"
    one = builder.constant("index", 1)
    assert str(error(builder.begin_if, one)) == "condition of type index, expected i1"
    assert str(error(builder.begin_for, x, one, one, [])) == f"loop bound of type {MEMREF}, expected index"
    assert str(error(builder.end_for, [])) == "no loop is open here"
    assert str(error(builder.select_branch, 1)) == "no branch is open here"
    assert str(error(builder.inline_if)) == "no branch is open here"
    _, carried = builder.begin_for(one, one, one, [one])
    assert str(error(builder.end_function)) == "no function is open here"
    assert str(error(builder.end_for, [])) == "found 0 carried values, expected 1"
    wrong = builder.constant("i32", 1)
    assert str(error(builder.end_for, [wrong])) == "carried values: number 0 has type i32, expected index"
    builder.begin_if(builder.constant("i1", True))
    assert str(error(builder.select_branch, 2)) == "branch 2, expected 0 or 1"
    assert str(error(builder.end_if, [wrong], [])) == "found 0 values of else, expected 1"
    assert str(error(builder.end_if, [wrong], [one])) == "values of else: number 0 has type index, expected i32"
    builder.end_if([], [])
    builder.end_for([carried])
    builder.end_function()
    module.verify()
    assert str(error(builder.begin_function, "f", [])) == "function 'f' exists already, expected another name"
    assert str(error(builder.begin_function, "", [])) == "function '' exists already, expected another name"
    message = "argument 'a' has type tensor<4xf32>, expected a memref or a scalar"
    assert str(error(builder.begin_function, "g", [("a", "tensor<4xf32>", None)])) == message


def test_values_of_other_modules(module):
    builder, _ = begin(module)
    other, _ = begin(_dither.Module())
    foreign = other.constant("tensor<4xf32>", 1.0)
    assert str(error(builder.create, "arith.negf", [foreign])) == "operand 0 belongs to another module"
    assert str(error(builder.begin_if, foreign)) == "condition belongs to another module"


def test_use_before_definition(module):
    builder, _ = begin(module)
    zero = builder.constant("index", 0)
    builder.begin_for(zero, zero, zero, [])
    inside = builder.constant("f32", 1.0)
    builder.end_for([])
    builder.create("arith.negf", [inside], None, ("k.py", 4, 7))
    builder.end_function()
    assert "does not dominate this use" in str(error(module.verify))


def test_parse_errors():
    failure = error(_dither.Module.parse, "func.func @f(", "bad.mlir")
    assert (failure.file, failure.line) == ("bad.mlir", 1)
    transpose = "%0 = quant.transpose %a : tensor<4x8xf32> -> tensor<4x8xf32>"
    text = f"func.func @f(%a: tensor<4x8xf32>) {{\n  {transpose}\n  return\n}}"
    failure = error(_dither.Module.parse, text, "bad.mlir")
    assert (failure.file, failure.line) == ("bad.mlir", 2)
    text = "func.func @f() {\n  %0 = llvm.mlir.undef : i32\n  return\n}"
    failure = error(_dither.Module.parse, text, "bad.mlir")
    assert failure.message == "found an operation of dialect 'llvm', expected those of tile programs"
    assert (failure.file, failure.line) == ("bad.mlir", 2)


def test_only_our_dialects():
    operations = _dither.Module().operations()
    assert {name.split(".")[0] for name in operations} >= {"quant", "func", "arith", "math", "scf", "tensor", "memref"}
    assert not any(name.startswith(("tosa.", "llvm.", "gpu.")) for name in operations)
    assert "axis" in operations["quant.reduce"]
    assert "quant.qcast" not in operations  # of the upstream dialect of this name


TYPES = [MEMREF, "memref<f32>", "memref<64xf8E4M3FN>", "f32", "i32", "index", "i64"]
ATTRIBUTES = [0, 1, -1, 7, 1 << 40, 1.5, True, "#quant<reduce_kind amax>", "#quant.format<mxfp8_e4m3>"]
ATTRIBUTES += ["#quant.format<nvfp4>", "array<i64: 1, 32>", "array<i64: 0>", "array<i32: 1, 1, 2, 0>", "array<i32: 1>"]
ATTRIBUTES += ["dense<1.0> : tensor<4x64xf32>", '"s"', "i32", "f8E4M3FN", "#quant<dim x>", "@f", "[1, 2]", "unit"]
RESULTS = ["tensor<4x64xf32>", "tensor<f32>", "f32", "i1", "index", "tensor<4x2xf8E8M0FNU>", "tensor<4x64xf4E2M1FN>"]
RESULTS += ["tensor<?x64xf32>", "tensor<*xf32>", "vector<4xf32>", "memref<4xf32>", "none", "tensor<64xi32>"]


def test_inference_of_any_operands(module):
    """Types of results come from operands that no verifier has seen yet."""
    builder = _dither.Builder(module)
    values = list(builder.begin_function("f", [(f"a{i}", text, None) for i, text in enumerate(TYPES)]))
    values += [builder.constant(f"tensor<4x64x{text}>", 1) for text in ("f32", "bf16", "i32", "i64")]
    values.append(builder.constant("tensor<4x64xi1>", True))
    created, messages = set(), set()
    for name in sorted(module.operations()):
        for value in values:
            for count in range(4):
                try:
                    builder.create(name, [value] * count)
                    created.add(name)
                except _dither.IRError as wrong:
                    assert wrong.message
                    messages.add(name)
    builder.end_function()
    module.verify()
    assert {"arith.addf", "arith.addi", "arith.negf", "math.fma", "quant.exp", "quant.mulhi"} <= created
    assert created <= messages


@pytest.mark.parametrize("seed", range(4))
def test_random_operations(module, seed):
    """No operation crashes on operands, attributes and results that make no sense."""
    rng = random.Random(seed)
    builder = _dither.Builder(module)
    values = list(builder.begin_function("f", [(f"a{i}", text, None) for i, text in enumerate(TYPES)]))
    for text in ("tensor<4x64xf32>", "tensor<f32>", "tensor<64xf32>", "tensor<4x64xbf16>", "f32"):
        values.append(builder.constant(text, 1.0))
    for text in ("tensor<4x64xi32>", "tensor<64xi32>", "index"):
        values.append(builder.constant(text, 1))
    for text in ("tensor<4x64xi1>", "i1"):
        values.append(builder.constant(text, True))
    attributes = {"axis": 1, "format": "#quant.format<mxfp8_e4m3>"}
    values += builder.create("quant.block_scale", [values[7]], attributes)
    values += builder.create("quant.cast_fp8", [values[7], values[-1]], attributes)
    created = 0
    for name, known in sorted(module.operations().items()):
        for _ in range(40 if name.startswith("quant.") else 10):
            operands = [rng.choice(values) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4]))]
            chosen = {key: rng.choice(ATTRIBUTES) for key in known if rng.random() < 0.8}
            results = None if rng.random() < 0.5 else [rng.choice(RESULTS) for _ in range(rng.choice([0, 1, 1, 2]))]
            try:
                builder.create(name, operands, chosen, None, results)
                created += 1
            except _dither.IRError:
                pass
    assert created > 5
    builder.end_function()
    assert len(str(module).splitlines()) > created


def test_gradients_vanish_where_their_operands_do(module):
    builder, x = begin(module)
    zero = builder.constant("index", 0)
    dz, t = (builder.create("quant.load", [x, zero, zero], result_types=["tensor<4x64xf32>"])[0] for _ in range(2))
    (gamma,) = builder.create(
        "quant.reshape",
        [builder.create("quant.load", [x, zero, zero], result_types=["tensor<1x64xf32>"])[0]],
        result_types=["tensor<64xf32>"],
    )
    (column,) = builder.create("quant.load", [x, zero, zero], result_types=["tensor<4x1xf32>"])
    rms, _ = builder.create("quant.rms_norm_backward", [dz, t, gamma, column])
    layer, _ = builder.create("quant.layer_norm_backward", [dz, t, gamma, column, column])
    for dim in (0, 1):
        assert builder.vanishes(rms, dim, [(dz, dim), (t, dim)])
        assert not builder.vanishes(rms, dim, [(t, dim)])
    # Past the last column it is 0 less a mean, which is 0 in a row of zeros.
    assert builder.vanishes(layer, 0, [(dz, 0)])
    assert not builder.vanishes(layer, 1, [(dz, 1), (t, 1)])


def test_what_is_computed_of_zeros_alone(module):
    builder, x = begin(module)
    zero = builder.constant("index", 0)
    dz, t = (builder.create("quant.load", [x, zero, zero], result_types=["tensor<4x64xf32>"])[0] for _ in range(2))
    column, row = (
        builder.create("quant.load", [x, zero, zero], result_types=[kind])[0]
        for kind in ("tensor<4x1xf32>", "tensor<1x64xf32>")
    )
    (by,) = builder.create("quant.broadcast", [row], result_types=["tensor<4x64xf32>"])
    (of_rows,) = builder.create("quant.broadcast", [column], result_types=["tensor<4x64xf32>"])
    (half,) = builder.create("quant.sigmoid", [t])

    def product(a, b):
        return builder.create("arith.mulf", [a, b])[0]

    zeros = [(dz, 0), (t, 0), (column, 0)]
    assert builder.is_zero_past(product(dz, of_rows), 0, zeros)
    # The sigmoid of 0 is a number that is known.
    assert not builder.is_zero_past(half, 0, zeros)
    assert builder.is_zero_past(product(dz, half), 0, zeros)
    # What a row has may be infinite, and past a column there is more of each row.
    assert not builder.is_zero_past(product(dz, by), 0, zeros)
    assert not builder.is_zero_past(product(dz, of_rows), 1, zeros)
    # Neither is above the other: the second of the two is chosen.
    (above,) = builder.create("arith.cmpf", [t, dz], {"predicate": 2}, result_types=["tensor<4x64xi1>"])
    assert builder.is_zero_past(builder.create("arith.select", [above, by, dz])[0], 0, zeros)
    assert not builder.is_zero_past(builder.create("arith.select", [above, dz, by])[0], 0, zeros)
    (gamma,) = builder.create("quant.reshape", [row], result_types=["tensor<64xf32>"])
    dx, terms = builder.create("quant.rms_norm_backward", [dz, t, gamma, column])
    assert builder.is_zero_past(terms, 0, zeros)
    assert not builder.is_zero_past(terms, 0, zeros[:2])
    assert not builder.is_zero_past(dx, 0, zeros)
    assert not builder.is_zero_past(terms, 1, [(dz, 1), (t, 1)])
