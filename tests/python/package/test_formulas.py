"""Formulas of the user's: for operators and for classes of modules."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

import layertrace


@pytest.fixture(scope="module")
def doubling() -> Iterator[str]:
    """An operator of one's own."""
    with torch.library._scoped_library("layertrace_test", "FRAGMENT") as library:
        library.define("double(Tensor x, int times, Tensor[] others) -> Tensor")
        library.impl("double", lambda x, times, others: x * 2, "CPU")
        yield "layertrace_test::double"


class Doubler(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        others = [torch.zeros(2), torch.zeros(3, 1)]
        return torch.ops.layertrace_test.double(self.linear(x), 3, others)  # type: ignore[no-any-return]


def flops(profile: layertrace.Profile, path: str = "") -> float:
    layer = profile.find(path)
    assert layer is not None
    return layer.phases["forward"].amounts.flops


LINEAR = 2 * 5 * 4 * 4


def test_without_a_formula_it_is_listed(doubling: str) -> None:
    profile = layertrace.summary(Doubler(), torch.randn(5, 4))
    assert flops(profile) == LINEAR
    uncounted = {op.name: op.uncounted for op in profile.operators if op.uncounted}
    assert uncounted == {doubling: 1}


def test_an_operators_formula_gets_its_arguments(doubling: str) -> None:
    seen = []

    def formula(arguments: dict[str, object]) -> int:
        seen.append(arguments)
        return 1000

    profile = layertrace.summary(Doubler(), torch.randn(5, 4), formulas={doubling: formula})
    assert flops(profile) == LINEAR + 1000
    assert seen == [{"x": (5, 4), "times": 3, "others": [(2,), (3, 1)]}]
    again = layertrace.summary(Doubler(), torch.randn(5, 4))
    assert flops(again) == LINEAR, "for that session alone"


def test_for_the_process_until_it_is_removed(doubling: str) -> None:
    layertrace.add_formula(doubling, lambda arguments: 7)
    try:
        assert layertrace.count_call(doubling, {"x": (5, 4)}) == 7
        assert flops(layertrace.summary(Doubler(), torch.randn(5, 4))) == LINEAR + 7
        other = layertrace.summary(
            Doubler(), torch.randn(5, 4), formulas={doubling: lambda arguments: 9}
        )
        assert flops(other) == LINEAR + 9
        assert layertrace.count_call(doubling, {"x": (5, 4)}) == 7, "it is back"
    finally:
        layertrace.remove_formula(doubling)
    assert layertrace.count_call(doubling, {"x": (5, 4)}) is None
    with pytest.raises(KeyError):
        layertrace.remove_formula(doubling)


def test_a_modules_formula_replaces_what_was_counted_inside(doubling: str) -> None:
    def formula(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> int:
        assert isinstance(module, nn.Linear)
        return inputs[0].numel() * 100 + output.numel()

    profile = layertrace.summary(Doubler(), torch.randn(5, 4), formulas={nn.Linear: formula})
    assert flops(profile, "linear") == 2020
    assert flops(profile) == 2020
    assert {op.name for op in profile.operators if op.amounts.flops} == {"Linear"}

    whole = layertrace.summary(Doubler(), torch.randn(5, 4), formulas={Doubler: lambda *_: 1})
    assert flops(whole) == 1
    assert flops(whole, "linear") == 0


@pytest.mark.parametrize("wrong", [lambda *_: 1 / 0, lambda *_: "many", lambda *_: -1])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_a_formula_raises_stays_here(wrong: object, doubling: str) -> None:
    model, x = Doubler(), torch.randn(5, 4)
    plain = model(x)
    for what in (doubling, nn.Linear):
        with layertrace.profile(model, formulas={what: wrong}):  # type: ignore[dict-item]
            assert torch.equal(model(x), plain)


def test_what_a_formula_raises_names_whose_it_is(
    doubling: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []
    monkeypatch.setattr("sys.unraisablehook", lambda info: told.append(info))
    for what in (doubling, nn.Linear):
        layertrace.summary(Doubler(), torch.randn(5, 4), formulas={what: lambda *_: 0.5})
    names = [str(info.object) for info in told]
    assert names == [
        f"layertrace: the formula for {doubling}",
        "layertrace: the formula for Linear",
    ]
    assert all("whole number of FLOPs; this is 0.5" in str(info.exc_value) for info in told)


def test_whole_floats_are_counts(doubling: str) -> None:
    model, x = Doubler(), torch.randn(5, 4)
    profile = layertrace.summary(model, x, formulas={doubling: lambda _: 2e3})
    assert flops(profile) == LINEAR + 2000
    assert flops(layertrace.summary(model, x, formulas={nn.Linear: lambda *_: 3e2})) == 300


def test_an_operator_that_nobody_has_is_told() -> None:
    model = nn.Linear(4, 4)
    formulas = {
        "mylib::atend": lambda _: 1,
        "aten::add.Tensr": lambda _: 1,
        "aten::mm": lambda _: 1,
    }
    with pytest.warns(layertrace.LayertraceWarning) as told:  # noqa: SIM117
        with layertrace.profile(model, formulas=formulas):
            model(torch.randn(2, 4))
    assert ["mylib::atend" in str(told[0].message), "aten::add.Tensr" in str(told[1].message)] == [
        True,
        True,
    ]
    assert len(told) == 2


def test_an_operator_may_be_registered_while_recording() -> None:
    model = nn.Linear(4, 4)
    with (
        warnings.catch_warnings(),
        torch.library._scoped_library("layertrace_late", "FRAGMENT") as library,
        layertrace.profile(model, formulas={"layertrace_late::same": lambda _: 5}) as session,
    ):
        warnings.simplefilter("error")
        library.define("same(Tensor x) -> Tensor")
        library.impl("same", lambda x: x.clone(), "CPU")
        torch.ops.layertrace_late.same(model(torch.randn(2, 4)))
        session.stop()
    assert any(op.amounts.flops == 5 for op in session.profile.operators)


def test_a_formula_may_run_operators_of_its_own(doubling: str) -> None:
    """They are none of the program's, however many."""

    def formula(arguments: dict[str, object]) -> int:
        shape = torch.tensor(arguments["x"])
        for _ in range(100):
            shape = shape @ torch.eye(2, dtype=shape.dtype)
        return int(shape.prod())

    profile = layertrace.summary(Doubler(), torch.randn(5, 4), formulas={doubling: formula})
    assert flops(profile) == LINEAR + 20
    assert not any(op.uncounted for op in profile.operators)


def test_of_formulas_inside_each_other_the_outer_one_speaks() -> None:
    model = nn.Sequential(nn.Sequential(nn.Linear(4, 4)))
    profile = layertrace.summary(
        model, torch.randn(5, 4), formulas={nn.Linear: lambda *_: 7, nn.Sequential: lambda *_: 11}
    )
    assert flops(profile) == 11


def test_a_modules_formula_that_cannot_tell_is_listed() -> None:
    profile = layertrace.summary(
        nn.Linear(4, 4), torch.randn(5, 4), formulas={nn.Linear: lambda *_: None}
    )
    assert [op.name for op in profile.operators if op.uncounted] == ["Linear"]


def test_none_is_uncounted(doubling: str) -> None:
    profile = layertrace.summary(
        Doubler(), torch.randn(5, 4), formulas={doubling: lambda arguments: None}
    )
    assert [op.name for op in profile.operators if op.uncounted] == [doubling]


def test_backward_threads_call_it_too() -> None:
    calls = []

    def formula(arguments: dict[str, object]) -> int:
        calls.append(arguments)
        return 11

    model = nn.Linear(4, 4)
    with layertrace.profile(model, formulas={"aten::mm": formula}) as session:
        model(torch.randn(5, 4)).sum().backward()
        session.step()
    layer = session.profile.find("")
    assert layer is not None
    assert layer.phases["backward"].amounts.flops == 11
    assert len(calls) == 1


def test_errors_say_what_to_do() -> None:
    with pytest.raises(layertrace.Error, match="no operator's name"):
        layertrace.add_formula("addmm", lambda arguments: 1)
    with pytest.raises(TypeError, match="operator's name or for a class"):
        layertrace.add_formula(3, lambda arguments: 1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="is a function"):
        layertrace.add_formula("aten::mm", 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError), layertrace.profile(nn.Linear(1, 1), formulas={3: len}):  # type: ignore[dict-item]
        pass
    with layertrace.profile(nn.Linear(1, 1)):
        pass  # nothing was left behind


# ---- Operators of one's own, as torch.library makes them ----


@torch.library.custom_op("layertrace_test::attend", mutates_args=())
def attend(x: torch.Tensor) -> torch.Tensor:
    return x @ x


@attend.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


attend.register_autograd(lambda ctx, gradient: gradient * 2)


class Attends(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return attend(x)


def test_a_custom_operator_is_counted_by_its_formula() -> None:
    model = Attends()
    x = torch.randn(3, 3, requires_grad=True)
    plain = model(x)
    formulas = {"layertrace_test::attend": lambda call: 1000}
    with layertrace.profile(model, formulas=formulas) as session:
        recorded = model(x)
        recorded.sum().backward()
        session.step()
    assert torch.equal(plain, recorded)
    assert torch.equal(x.grad, torch.full((3, 3), 2.0))  # type: ignore[arg-type]
    assert session.profile.layers[0].phases["forward"].amounts.flops == 1000
    (operator,) = (o for o in session.profile.operators if o.name == "layertrace_test::attend")
    assert (operator.calls, operator.uncounted) == (1, 0)


def test_a_custom_operator_without_a_formula_counts_what_runs_inside() -> None:
    model = Attends()
    with layertrace.profile(model) as session:
        model(torch.randn(3, 3))
        session.step()
    assert session.profile.layers[0].phases["forward"].amounts.flops == 2 * 3 * 3 * 3


def test_custom_operators_are_left_as_they_were() -> None:
    before = type(attend).__call__
    with layertrace.profile(Attends()) as session:
        compiled = torch.compile(lambda x: attend(x) + 1, backend="eager", fullgraph=True)
        x = torch.eye(2)
        assert torch.equal(compiled(x), x + 1)
        session.step()
    assert type(attend).__call__ is before
