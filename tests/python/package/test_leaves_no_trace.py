"""During a session and after it, every module is what it was; whatever else has a hand in it."""

from __future__ import annotations

import copy
import functools
import gc
import pickle
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from models import LINEAR, PAIR, Calls, Pair, train
from recorded import assert_nodes, names, record, times
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.modules import module as module_internals
from torch.nn.utils import parametrizations, parametrize
from witness import gradients, same_gradients, watch

import layertrace

# ---- The modules themselves -----------------------------------------------------------------


def identities(mapping: Any) -> dict[Any, int]:
    return {key: id(value) for key, value in mapping.items()}


def snapshot(model: nn.Module) -> dict[str, object]:
    """All that is on the modules and their classes: names, and which object each one is."""
    modules = {
        path: (
            id(module),
            type(module),
            identities(vars(module)),
            {k: identities(v) for k, v in vars(module).items() if isinstance(v, dict)},
        )
        for path, module in model.named_modules()
    }
    classes = {
        each: identities({k: v for k, v in vars(each).items() if k != "_compiled_call_impl"})
        for module in model.modules()
        for each in type(module).__mro__
    }
    hooks = {
        k: len(v)
        for k, v in vars(module_internals).items()
        if k.startswith("_global_") and isinstance(v, dict)
    }
    return {
        "modules": modules,
        "classes": classes,
        "hooks": hooks,
        "state": identities(model.state_dict(keep_vars=True)),
    }


class Varied(nn.Module):
    """Buffers, a list, a hook, a parameter of its own, and a look at itself from inside."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))
        self.norm = nn.BatchNorm1d(3)
        self.layers = nn.ModuleList([Pair(), Pair()])
        self.layers[0].register_forward_hook(lambda *_: None)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(x) * self.scale
        for layer in self.layers:
            x = layer(x)
        look_inside(self)
        return x


def look_inside(model: nn.Module) -> None:
    """What is done in the middle of a forward: see test_modules_stay_what_they_are."""


def inside(model: nn.Module) -> dict[str, object]:
    """The same during a session, which listens for new parameters: once for all, on no module."""
    taken = snapshot(model)
    hooks = dict(taken["hooks"])  # type: ignore[call-overload]
    assert hooks.pop("_global_parameter_registration_hooks") == 1
    return {**taken, "hooks": {**hooks, "_global_parameter_registration_hooks": 0}}


def test_modules_stay_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = Varied(), torch.randn(4, 3)
    train(model, x)
    before = snapshot(model)
    seen: list[dict[str, object]] = []
    monkeypatch.setitem(globals(), "look_inside", lambda model: seen.append(inside(model)))
    for ops in (True, False):
        with layertrace.profile(model, ops=ops) as session:
            assert inside(model) == before
            train(model, x)
            session.step()
            assert inside(model) == before
        assert snapshot(model) == before
        assert nn.Module.__dict__["_compiled_call_impl"] is None
    assert seen == [before, before]


def test_the_class_attribute_is_back_after_any_end() -> None:
    model = Pair()
    assert nn.Module.__dict__["_compiled_call_impl"] is None
    with pytest.raises(ZeroDivisionError), layertrace.profile(model):
        assert nn.Module.__dict__["_compiled_call_impl"] is not None
        raise ZeroDivisionError
    assert nn.Module.__dict__["_compiled_call_impl"] is None
    assert model._compiled_call_impl is None
    assert "_compiled_call_impl" not in vars(model)


COPIES: dict[str, Callable[[Any], Any]] = {
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
}


@pytest.mark.parametrize("how", COPIES)
def test_copies_made_inside_and_after(how: str) -> None:
    """A copy works, is as plain as the original, and is not taken for it."""
    model, x = Pair(), torch.randn(2, 3)
    copies: list[Any] = []

    def body() -> None:
        train(model, x)
        copies.append(COPIES[how](model))
        copies[0](x)
        if how != "copy":  # which has the original's layers
            copies[0].a(x)

    run = record(model, body)
    copies.append(COPIES[how](model))
    for each in copies:
        assert torch.equal(each(x), model(x))
        assert vars(each).keys() == vars(model).keys()
        assert each.state_dict().keys() == model.state_dict().keys()
    calls = {
        path: layer.calls
        for path in ("", "a", "b", "(Pair)")
        for layer in [run.profile.find(path)]
        if layer is not None
    }
    if how == "copy":
        assert calls == {"": 1, "a": 2, "b": 2, "(Pair)": 1}
    else:
        assert calls == {"": 1, "a": 1, "b": 1, "(Pair)": 1}
        assert run.forward_calls()["(Pair).a"] == 1
        assert run.forward_calls()["(Linear)"] == 1


def test_a_state_dict_can_be_saved_and_loaded(tmp_path: Path) -> None:
    model, x = Pair(), torch.randn(2, 3)
    fresh = Pair()
    with layertrace.profile(model):
        train(model, x)
        torch.save(model.state_dict(), tmp_path / "state.pt")
        torch.save(model, tmp_path / "model.pt")
        fresh.load_state_dict(torch.load(tmp_path / "state.pt"))
        whole = torch.load(tmp_path / "model.pt", weights_only=False)
    assert torch.equal(fresh(x), model(x))
    assert torch.equal(whole(x), model(x))


def test_a_session_that_has_ended_keeps_no_model() -> None:
    """On a GPU that would be the memory of the model, for the sake of a table."""
    model, x = Pair(), torch.randn(2, 3)
    alive = weakref.ref(model)
    with layertrace.profile(model) as session:
        train(model, x)
    del model
    gc.collect()
    assert alive() is None
    assert session.profile.find("a").calls == 1  # type: ignore[union-attr]


def test_modules_can_go_while_a_session_records() -> None:
    model, x = Pair(), torch.randn(2, 3)
    alive = weakref.ref(model.a)
    with layertrace.profile(model):
        train(model, x)
        model.a = nn.Linear(3, 3)
        gc.collect()
        assert alive() is None
        train(model, x)


# ---- Modules that come and go ---------------------------------------------------------------


def test_modules_that_are_added_removed_and_replaced(ops: bool) -> None:
    x = torch.randn(2, 3)
    model = nn.Sequential()
    model.add_module("first", nn.Linear(3, 3))
    model.add_module("middle", nn.Tanh())

    def body() -> None:
        train(model, x)
        model.add_module("late", Pair())
        train(model, x)
        model.first = nn.Linear(3, 3)  # another one takes its place, and its layer
        train(model, x)
        del model.middle
        train(model, x)

    run = record(model, body, ops=ops)
    assert run.forward_calls() == {
        "": 4,
        "first": 4,
        "middle": 3,
        "late": 3,
        "late.a": 3,
        "late.b": 3,
    }
    assert_nodes(
        run,
        {
            None: times(4, "SumBackward0"),
            "first": times(4, LINEAR),
            "middle": times(3, "TanhBackward0"),
            "late": times(3, "TanhBackward0"),
            "late.a": times(3, LINEAR),
            "late.b": times(3, LINEAR),
        },
    )
    assert all(layer.registered for layer in run.profile.layers)
    late = run.profile.find("late.a")
    assert late is not None
    assert late.type == "Linear"


def test_a_module_of_another_kind_takes_the_place(ops: bool) -> None:
    """The layer is the place in the model; both have their nodes there."""
    model, x = Pair(), torch.randn(2, 3)

    def body() -> None:
        train(model, x)
        model.b = nn.Sequential(nn.Tanh(), nn.Linear(3, 2))  # type: ignore[assignment]
        train(model, x)

    run = record(model, body, ops=ops)
    assert run.forward_calls() == {"": 2, "a": 2, "b": 2, "b.0": 1, "b.1": 1}
    assert_nodes(
        run,
        {
            None: "SumBackward0 SumBackward0",
            "": "TanhBackward0 TanhBackward0",
            "a": f"{LINEAR} {LINEAR}",
            "b": LINEAR,
            "b.0": "TanhBackward0",
            "b.1": LINEAR,
        },
    )


@pytest.mark.xfail(
    strict=True,
    reason="a module keeps the path under which it was first found (docs/python.md says so)",
)
def test_modules_that_move(ops: bool) -> None:
    """A layer's path is where the model has it when it is called."""
    model, x = nn.Sequential(nn.Linear(3, 3), nn.Tanh()), torch.randn(2, 3)
    places: Counter[str] = Counter()

    def body() -> None:
        for change in (lambda: None, lambda: model.insert(0, nn.ReLU())):
            change()
            places.update(path for path, _ in model.named_modules())
            train(model, x)

    run = record(model, body, ops=ops)
    assert run.forward_calls() == places
    assert_nodes(
        run,
        {
            None: "SumBackward0 SumBackward0",
            "0": LINEAR,
            "1": f"TanhBackward0 {LINEAR}",
            "2": "TanhBackward0",
        },
    )


def replaced_parameter(model: Pair) -> None:
    model.a.weight = nn.Parameter(torch.randn(3, 3))


def loaded_state(model: Pair) -> None:
    state = {name: torch.randn_like(each) for name, each in model.state_dict().items()}
    model.load_state_dict(state, assign=True)


@pytest.mark.parametrize("change", [replaced_parameter, loaded_state])
def test_parameters_that_are_replaced(change: Callable[[Pair], None], ops: bool) -> None:
    """A gradient belongs to the module that has the parameter now."""
    model, x = Pair(), torch.randn(2, 3)

    def body() -> None:
        change(model)
        train(model, x)

    assert_nodes(record(model, body, ops=ops), PAIR)


def test_parameters_of_another_type(ops: bool) -> None:
    """`double()` puts other data into the same parameters."""
    model, x = Pair(), torch.randn(2, 3, dtype=torch.float64)

    def body() -> None:
        model.double()
        train(model, x)

    assert_nodes(record(model, body, ops=ops), PAIR)


def test_lazy_modules(ops: bool) -> None:
    """They get their parameters, and their class, in the first call."""
    model, x = nn.Sequential(nn.LazyLinear(3), nn.LazyLinear(2)), torch.randn(2, 3)
    run = record(model, lambda: train(model, x), ops=ops)
    assert_nodes(run, {None: "SumBackward0", "0": LINEAR, "1": LINEAR})


def test_modules_that_live_for_one_call() -> None:
    """Each takes the place in memory of the one before, which was of another kind."""

    def forward(_: nn.Module, x: Tensor) -> Tensor:
        for i in range(200):
            x = (nn.Tanh() if i % 2 else nn.ReLU())(x)
        return x

    model, x = Calls(forward), torch.randn(2, 3)
    run = record(model, lambda: model(x))
    assert run.forward_calls() == {"": 1, "<Tanh>": 100, "<ReLU>": 100}


# ---- What others do to modules --------------------------------------------------------------


@pytest.mark.parametrize("when", ["before", "inside"])
def test_a_forward_that_others_have_patched(when: str, ops: bool) -> None:
    model, x = Pair(), torch.randn(2, 3)
    original = model.a.forward

    @functools.wraps(original)
    def patched(x: Tensor) -> Tensor:
        return original(x) * 2

    def patch() -> None:
        model.a.forward = patched  # type: ignore[method-assign, assignment]

    def body() -> None:
        if when == "inside":
            patch()
        train(model, x)

    if when == "before":
        patch()
    run = record(model, body, ops=ops)
    assert vars(model.a)["forward"] is patched
    assert_nodes(run, PAIR | {"a": f"MulBackward0 {LINEAR}"})


def test_a_forward_that_is_called_directly(ops: bool) -> None:
    """Past nn.Module.__call__: the layers are seen, the module itself is not."""
    model, x = Pair(), torch.randn(2, 3)
    run = record(model, lambda: torch.autograd.backward(model.forward(x).sum()), ops=ops)
    assert run.forward_calls() == {"a": 1, "b": 1}
    assert_nodes(run, {None: "SumBackward0 TanhBackward0", "a": LINEAR, "b": LINEAR})


def test_the_report_says_what_to_do_about_it_in_python() -> None:
    model, x = Pair(), torch.randn(2, 3)
    run = record(model, lambda: torch.autograd.backward(model.forward(x).sum()))
    (note,) = run.profile.health.notes
    assert note.startswith("Pair itself was never entered")
    assert "layertrace::" not in note


HOOKS = (
    "forward_pre",
    "forward_pre_kwargs",
    "forward",
    "forward_kwargs",
    "forward_always",
    "full_backward_pre",
    "full_backward",
)


def add_hook(module: nn.Module, kind: str, fired: Counter[str]) -> Any:
    """A hook that changes what it may change."""

    def before(_: nn.Module, args: tuple[Tensor, ...], *kwargs: Any) -> Any:
        fired[kind] += 1
        changed = (args[0] * 2,)
        return (changed, *kwargs) if kwargs else changed

    def after(_: nn.Module, *values: Any) -> Any:
        fired[kind] += 1
        return values[-1] * 3

    def backward_before(_: nn.Module, gradients: tuple[Tensor, ...]) -> Any:
        fired[kind] += 1
        return (gradients[0] * 5,)

    def backward(_: nn.Module, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> Any:
        fired[kind] += 1
        return tuple(None if each is None else each * 7 for each in inputs)

    return {
        "forward_pre": lambda: module.register_forward_pre_hook(before),
        "forward_pre_kwargs": lambda: module.register_forward_pre_hook(before, with_kwargs=True),
        "forward": lambda: module.register_forward_hook(after),
        "forward_kwargs": lambda: module.register_forward_hook(after, with_kwargs=True),
        "forward_always": lambda: module.register_forward_hook(after, always_call=True),
        "full_backward_pre": lambda: module.register_full_backward_pre_hook(backward_before),
        "full_backward": lambda: module.register_full_backward_hook(backward),
    }[kind]()


@pytest.mark.parametrize("when", ["before", "inside"])
@pytest.mark.parametrize("kind", HOOKS)
def test_hooks_of_users(kind: str, when: str) -> None:
    """They fire, what they return holds, and what they do is in their module's scope."""
    x, fired = torch.randn(2, 3), Counter[str]()
    plain = Pair()
    model = copy.deepcopy(plain)
    add_hook(plain.b, kind, fired)
    want = plain(x)
    want.sum().backward()
    assert fired == {kind: 1}

    got: list[Tensor] = []
    fired.clear()

    def body() -> None:
        if when == "inside":
            add_hook(model.b, kind, fired)
        got.append(model(x))
        torch.autograd.backward(got[0].sum())

    if when == "before":
        add_hook(model.b, kind, fired)
    run = record(model, body)
    assert fired == {kind: 1}
    assert torch.equal(got[0], want)
    assert same_gradients(model, gradients(plain))
    assert run.forward_calls() == {"": 1, "a": 1, "b": 1}
    assert run.by_layer[None] == "SumBackward0"
    assert run.by_layer[""] == "TanhBackward0"
    assert run.by_layer["a"] == names(LINEAR)
    # For hooks of the backward PyTorch puts nodes of its own around the module.
    backward = kind.startswith("full")
    more = times(2, "BackwardHookFunctionBackward") if backward else "MulBackward0"
    assert run.by_layer["b"] == names(LINEAR, more)
    phase = "backward" if backward else "forward"
    assert run.operators_of("b", phase)["aten::mul"] == 1


def test_hooks_on_all_modules() -> None:
    model, x, called = Pair(), torch.randn(2, 3), []
    handle = module_internals.register_module_forward_hook(
        lambda module, *_: called.append(type(module).__name__)
    )
    try:
        run = record(model, lambda: train(model, x))
    finally:
        handle.remove()
    assert called == ["Linear", "Linear", "Pair"]
    assert_nodes(run, PAIR)


def test_parameters_given_by_functional_call(ops: bool) -> None:
    """The layers are the model's; gradients of parameters that it does not own are nobody's."""
    model, x = Pair(), torch.randn(2, 3)
    own: dict[str, Tensor] = dict(model.named_parameters())
    run = record(model, lambda: functional_call(model, own, (x,)).sum().backward(), ops=ops)
    assert_nodes(run, PAIR)

    foreign = {name: each.detach().clone().requires_grad_() for name, each in own.items()}
    before = snapshot(model)
    run = record(model, lambda: functional_call(model, foreign, (x,)).sum().backward(), ops=ops)
    assert snapshot(model) == before
    leaves = times(4, "AccumulateGrad")
    alone = LINEAR.replace(" AccumulateGrad", "")
    assert_nodes(run, PAIR | {None: f"SumBackward0 {leaves}", "a": alone, "b": alone})


def test_gradients_of_each_sample() -> None:
    model, x = Pair(), torch.randn(4, 3)
    parameters = {name: each.detach() for name, each in model.named_parameters()}

    def loss(parameters: dict[str, Tensor], sample: Tensor) -> Tensor:
        return functional_call(model, parameters, (sample[None],)).sum()  # type: ignore[no-any-return]

    def per_sample() -> dict[str, Tensor]:
        return vmap(grad(loss), in_dims=(None, 0))(parameters, x)  # type: ignore[no-any-return]

    want = per_sample()
    got: list[dict[str, Tensor]] = []
    run = record(model, lambda: got.append(per_sample()))
    assert all(torch.equal(got[0][name], want[name]) for name in parameters)
    assert run.forward_calls() == {"": 1, "a": 1, "b": 1}
    assert run.by_layer[""] == "TanhBackward0"
    assert run.by_layer["b"] == names("AddmmBackward0 TBackward0")


class Doubled(nn.Module):
    """A parametrisation of one's own."""

    def forward(self, weight: Tensor) -> Tensor:
        return weight * 2


PARAMETRIZATIONS: dict[str, tuple[Callable[[nn.Module], object], str]] = {
    "weight_norm": (parametrizations.weight_norm, "WeightNormInterfaceBackward0"),
    "spectral_norm": (parametrizations.spectral_norm, "DivBackward0 MvBackward0 VdotBackward0"),
    "orthogonal": (
        functools.partial(parametrizations.orthogonal, orthogonal_map="matrix_exp"),
        "LinalgMatrixExpBackward0 MmBackward0 SubBackward0 TransposeBackward0 TrilBackward0",
    ),
    "own": (
        lambda module: parametrize.register_parametrization(module, "weight", Doubled()),
        "MulBackward0",
    ),
}


@pytest.mark.parametrize("kind", PARAMETRIZATIONS)
def test_parametrizations(kind: str, ops: bool) -> None:
    """The computation of a weight is the parametrisation's own, forward and backward."""
    apply, made = PARAMETRIZATIONS[kind]
    model, x = Pair(), torch.randn(2, 3)
    apply(model.a)
    nodes, calls = watch(model, lambda: model(x).sum())
    before = snapshot(model)
    run = record(model, lambda: train(model, x), ops=ops)
    assert snapshot(model) == before
    assert run.nodes == nodes
    assert run.forward_calls() == calls
    weight = "a.parametrizations.weight"
    assert run.by_layer[f"{weight}.0"] == names(made)
    assert set(run.by_layer[weight].split()) == {"AccumulateGrad"}
    assert run.by_layer["a"] == names("AddmmBackward0 TBackward0 AccumulateGrad")


def test_a_parametrization_added_inside(ops: bool) -> None:
    """It changes the class of the module."""
    model, x = Pair(), torch.randn(2, 3)

    def body() -> None:
        parametrizations.weight_norm(model.a)
        train(model, x)

    run = record(model, body, ops=ops)
    assert run.by_layer["a.parametrizations.weight.0"] == "WeightNormInterfaceBackward0"
    assert run.by_layer["a.parametrizations.weight"] == names("AccumulateGrad AccumulateGrad")
    assert run.by_layer[None] == "SumBackward0"


@pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated")
def test_weight_norm_as_a_hook(ops: bool) -> None:
    """The old one computes the weight in a forward pre-hook: in its module's scope."""
    model, x = Pair(), torch.randn(2, 3)
    nn.utils.weight_norm(model.a)
    run = record(model, lambda: train(model, x), ops=ops)
    assert_nodes(run, PAIR | {"a": f"WeightNormInterfaceBackward0 {LINEAR} AccumulateGrad"})


# ---- Again and again ------------------------------------------------------------------------

FLAT_BYTES = 5 << 20


def resident_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_a_thousand_starts_and_stops() -> None:
    model, x = Pair(), torch.randn(2, 3)
    before = snapshot(model)

    def run() -> None:
        with layertrace.profile(model) as session:
            train(model, x)
            session.step()

    for _ in range(100):
        run()
    first = resident_bytes()
    for _ in range(1000):
        run()
    assert abs(resident_bytes() - first) < FLAT_BYTES
    model.zero_grad()
    assert snapshot(model) == before
    assert nn.Module.__dict__["_compiled_call_impl"] is None


def test_ten_thousand_steps() -> None:
    model, x = nn.Sequential(nn.Linear(3, 3)), torch.randn(2, 3)
    with layertrace.profile(model) as session:
        for step in range(12_000):
            if step == 2000:
                first = resident_bytes()
            train(model, x)
            session.step()
        assert abs(resident_bytes() - first) < FLAT_BYTES
    profile = session.profile
    assert profile.step_count == 12_000
    assert profile.health.dropped == 0
    assert profile.health.nodes == 5 * 12_000
    assert profile.find("0").calls == 1  # type: ignore[union-attr]


# ---- Parameters -----------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["inside", "after"])
def test_parameters_can_be_swapped(when: str) -> None:
    """PyTorch refuses where anybody has a weak reference to a tensor."""
    model = Pair()
    with layertrace.profile(model) as session:
        train(model, torch.randn(2, 3))
        if when == "inside":
            torch.utils.swap_tensors(model.a.weight, nn.Parameter(torch.ones(3, 3)))
    if when == "after":
        torch.utils.swap_tensors(model.a.weight, nn.Parameter(torch.ones(3, 3)))
    assert torch.equal(model.a.weight, torch.ones(3, 3))
    assert session.profile.find("a").backward.calls.mean == 1  # type: ignore[union-attr]


def test_another_tensor_at_the_same_address_is_another() -> None:
    """A parameter that has gone leaves its address to the next leaf, and not its owner."""
    model = Pair()
    with layertrace.profile(model) as session:
        train(model, torch.randn(2, 3))
        for _ in range(50):
            del model.a.weight
            model.a.weight = torch.randn(3, 3)  # no parameter
            leaf = torch.randn(3, 3, requires_grad=True)
            (leaf * 2).sum().backward()
            del leaf
            del model.a.weight
            model.a.weight = nn.Parameter(torch.randn(3, 3))
    foreign = [each for each in session.profile.health.unattributed_nodes if "tensor" in each.cause]
    assert sum(each.count for each in foreign) == 50


def test_a_session_that_has_ended_keeps_no_optimizer() -> None:
    model = Pair()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with layertrace.profile(model, optimizer=optimizer) as session:
        train(model, torch.randn(2, 3))
        optimizer.step()
    weights = weakref.ref(model.a.weight)
    del model, optimizer
    gc.collect()
    assert weights() is None
    assert session.profile.step_count == 1


def test_a_session_that_nobody_keeps_ends_at_once() -> None:
    gc.disable()
    try:
        session = layertrace.profile(Pair()).start()
        del session
        with layertrace.profile(Pair()):
            pass
    finally:
        gc.enable()


# ---- Other profilers ------------------------------------------------------------------------


def seen_by_torch_profiler(model: nn.Module, x: Tensor) -> Counter[str]:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        train(model, x)
    return Counter(event.name for event in profiler.events())


def test_another_profiler_sees_all_that_it_would(ops: bool) -> None:
    """The engine's own records of nodes, too, which layertrace does without."""
    model, x = Pair(), torch.randn(2, 3)
    train(model, x)
    alone = seen_by_torch_profiler(model, x)
    assert any(name.startswith("autograd::engine::evaluate_function") for name in alone)
    with layertrace.profile(model, ops=ops) as session:
        assert seen_by_torch_profiler(model, x) == alone
    assert session.profile.health.nodes == 10
