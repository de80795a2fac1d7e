"""The language of generic constraints."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cobre.core.generic_constraints import Coefficient, Term
from cobre.io.input_files.constraint_expressions import (
    VARIABLES,
    ExpressionError,
    LinearForm,
    number,
    parameter,
    parse_constraint,
    parse_expression,
    references_in,
)

K = {"k": parameter("k"), "m": parameter("m")}


def term(variable, entity, factor=1.0, parameters=(), block=None, bus=None):
    return Term(Coefficient(factor, parameters), variable, entity, block, bus)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("hydro_storage(0)", [term("hydro_storage", 0)]),
        ("-hydro_storage(0)", [term("hydro_storage", 0, -1.0)]),
        (
            "2.5 * thermal_generation(5) - hydro_generation(3)",
            [term("thermal_generation", 5, 2.5), term("hydro_generation", 3, -1.0)],
        ),
        ("1e-3*bus_deficit(7)", [term("bus_deficit", 7, 1e-3)]),
        (".5*bus_deficit(7)", [term("bus_deficit", 7, 0.5)]),
        ("hydro_turbined(1, 2)", [term("hydro_turbined", 1, block=2)]),
        ("hydro_turbined(1, bus=4)", [term("hydro_turbined", 1, bus=4)]),
        ("hydro_generation(1, 2, bus=4)", [term("hydro_generation", 1, block=2, bus=4)]),
        ("hydro_generation(1, bus=4, 2)", [term("hydro_generation", 1, block=2, bus=4)]),
        ("@k * hydro_spillage(1)", [term("hydro_spillage", 1, parameters=("k",))]),
        ("2*@k*hydro_spillage(1)", [term("hydro_spillage", 1, 2.0, ("k",))]),
        ("@k*-2*hydro_spillage(1)*@m", [term("hydro_spillage", 1, -2.0, ("k", "m"))]),
        ("2*(line_direct(0) - line_reverse(0))", [term("line_direct", 0, 2.0), term("line_reverse", 0, -2.0)]),
        ("line_exchange(3) + line_exchange(3)", [term("line_exchange", 3, 2.0)]),
        ("  thermal_generation ( 1.0 ) ", [term("thermal_generation", 1)]),
    ],
)
def test_expressions_parse_to_terms(text, terms):
    parsed = parse_constraint(text, K)
    assert parsed.relation is None
    assert list(parsed.left.terms) == terms
    assert parsed.left.constants == ()


@pytest.mark.parametrize("name", sorted(VARIABLES))
def test_every_variable_name_parses(name):
    assert parse_constraint(f"{name}(2)", {}).left.terms == (term(name, 2),)


@pytest.mark.parametrize("relation", ["<=", ">=", "=="])
def test_variables_move_to_the_left_and_constants_stay(relation):
    parsed = parse_constraint(f"bus_excess(0) + 2 {relation} 5 - 1 + 2*@k + bus_deficit(0)", K)
    assert parsed.relation == relation
    assert parsed.left == LinearForm((term("bus_excess", 0), term("bus_deficit", 0, -1.0)), (Coefficient(2.0),))
    assert parsed.right == (Coefficient(4.0), Coefficient(2.0, ("k",)))


def test_constant_left_side_is_accepted():
    parsed = parse_constraint("3 >= thermal_generation(0)", {})
    assert parsed.left == LinearForm((term("thermal_generation", 0, -1.0),), (Coefficient(3.0),))
    assert parsed.right == ()


def test_named_expressions_are_inserted():
    inner = parse_expression("thermal_generation(0) + 2*thermal_generation(1) + 4", {})
    parsed = parse_constraint("3*@e - thermal_generation(1)", {"e": inner})
    assert parsed.left.terms == (term("thermal_generation", 0, 3.0), term("thermal_generation", 1, 5.0))
    assert parsed.left.constants == (Coefficient(12.0),)


def test_doubling_expressions_do_not_grow():
    form = {"e0": parse_expression("thermal_generation(0)", {})}
    for level in range(60):
        form[f"e{level + 1}"] = parse_expression(f"@e{level} + @e{level}", form)
    assert form["e60"].terms == (term("thermal_generation", 0, 2.0**60),)


@pytest.mark.parametrize(
    ("text", "position", "words", "remedy"),
    [
        ("", 1, "empty", "sum of terms"),
        ("   ", 1, "empty", "sum of terms"),
        ("5", 1, "has no variable", "at least one"),
        ("5 <= 6", 1, "has no variable", "at least one"),
        ("2 thermal_generation(0)", 3, "`thermal_generation` is not allowed", "`*`"),
        ("thermal_generation(0) < 3", 23, "`<` is not allowed", "`<=`"),
        ("thermal_generation(0) = 3", 23, "`=` is not a relation", "`==`"),
        ("1 <= thermal_generation(0) <= 5", 28, "not the only relation", "two constraints"),
        ("thermal_generation(0) +", 24, "the end found where a term was expected", "a number"),
        ("thermal_generation(0) $", 23, "`$` is not allowed", "numbers"),
        ("thermal_generation(0))", 22, "`)` is not allowed", "join"),
        ("(thermal_generation(0)", 23, "the end found where `)` was expected", "close"),
        ("thermal_generation(0", 21, "the end found where `)` was expected", "close"),
        ("thermal_generation", 19, "the end found where `(` was expected", "thermal_generation(id)"),
        ("thermal_generation()", 20, "`)` found where the id of an entity was expected", "whole number"),
        ("thermal_generation(-1)", 20, "`-` found where the id", "whole number"),
        ("thermal_generation(1.5)", 20, "`1.5` found where the id", "whole number"),
        ("thermal_generation(99999999999)", 20, "found where the id", "whole number"),
        ("thermal_generation(0,)", 22, "`)` found where the id of a block", "whole number"),
        ("thermal_generation(0, 1, 2)", 26, "two values for the block", "give one"),
        ("hydro_turbined(0, bus=1, bus=2)", 26, "two values for the bus", "give one"),
        ("thermal_generation(0, bus=1)", 23, "takes no bus", "hydro_turbined and hydro_generation"),
        ("hydro_turbined(0, bus 1)", 23, "`1` found where `=` was expected", "bus=ID"),
        ("hydro_turbined(0, block=1)", 19, "`block` is not an argument", "bus=ID"),
        ("hydro_storage(0, 1)", 18, "takes no block", "leave it out"),
        ("line_exchange(source_bus=1, target_bus=2)", 15, "`source_bus` found where the id", "whole number"),
        ("hydro_storag(0)", 1, "not a variable", "did you mean hydro_storage?"),
        ("@z * thermal_generation(0)", 1, "@z is not defined", "generic_parameters.json"),
        ("@kk * thermal_generation(0)", 1, "@kk is not defined", "did you mean k?"),
        ("@ * thermal_generation(0)", 1, "`@` is not allowed", "right after"),
        ("2 / thermal_generation(0)", 3, "divided by a variable", "linear"),
        ("thermal_generation(0) / (2 - 2)", 23, "the divisor is 0", "another number"),
        ("thermal_generation(0) * thermal_generation(1)", 23, "two variables are multiplied", "linear"),
        ("1e999 * thermal_generation(0)", 1, "too large", "1e308"),
        ("(" * 80 + "thermal_generation(0)" + ")" * 80, 51, "nested too deeply", "parentheses"),
        ("*".join(["@k"] * 20) + "*thermal_generation(0)", 24, "parameters are multiplied", "linear"),
    ],
)
def test_errors_have_position_and_explanation(text, position, words, remedy):
    with pytest.raises(ExpressionError) as caught:
        parse_constraint(text, K)
    assert words in caught.value.message
    assert remedy in caught.value.remedy
    assert caught.value.position == position


def test_all_undefined_names_are_reported_once_each():
    with pytest.raises(ExpressionError) as caught:
        parse_constraint("@z * thermal_generation(0) / (@y - 1) + @k + @z >= @x", K)
    found = [caught.value, *caught.value.others]
    assert [(error.position, error.message) for error in found] == [
        (1, "@z is not defined"),
        (31, "@y is not defined"),
        (52, "@x is not defined"),
    ]


def test_references_are_resolved_in_order():
    assert references_in("2*@b + @a*thermal_generation(0) - @b") == ("b", "a")


@given(st.text(max_size=60))
def test_any_text_parses_or_raises(text):
    try:
        parse_constraint(text, K)
    except ExpressionError as error:
        assert 1 <= error.position <= len(text) + 1


@given(st.text(alphabet="@k0129.e+-*()=<>, busthermal_generation", max_size=60))
def test_any_text_of_the_alphabet_parses_or_raises(text):
    try:
        parse_constraint(text, K)
    except ExpressionError as error:
        assert 1 <= error.position <= len(text) + 1


numbers = st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: round(value, 3))


@st.composite
def sums(draw, depth=0):
    """Draw an expression as text, and its value when every variable is 1 and @k is 3."""
    kind = draw(st.sampled_from(["number", "term", "scaled", "parameter"] + ["sum", "group"] * (depth < 3)))
    value = draw(numbers)
    if kind == "number":
        return f"({value!r})", value
    if kind == "term":
        return f"thermal_generation({draw(st.integers(0, 3))})", 1.0
    if kind == "scaled":
        return f"{abs(value)!r} * bus_deficit({draw(st.integers(0, 3))})", abs(value)
    if kind == "parameter":
        return "@k", 3.0
    left, left_value = draw(sums(depth + 1))
    if kind == "group":
        return f"{abs(value)!r} * ({left})", abs(value) * left_value
    right, right_value = draw(sums(depth + 1))
    sign = draw(st.sampled_from("+-"))
    return f"{left} {sign} ({right})", left_value + right_value * (1 if sign == "+" else -1)


@given(sums())
def test_constant_expressions_equal_python_arithmetic(pair):
    text, value = pair
    form = parse_expression(text, K)
    parts = [item.coefficient for item in form.terms] + list(form.constants)
    total = math.fsum(part.factor * 3.0 ** len(part.parameters) for part in parts)
    assert total == pytest.approx(value, rel=1e-9, abs=1e-3)


def test_numbers_multiply_before_they_add():
    assert parse_expression("2 + 3 * 4", {}) == number(14.0)
