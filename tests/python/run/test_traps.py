"""`layertrace run` and programs that do what makes recording hard."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import support
from support import BIN, BUILD_DIR

MODEL = """
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

def train(steps, model=model, optimizer=None):
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        model(torch.randn(2, 4)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
"""


def record(folder: Path, script: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs a script under `layertrace run`, with the model at hand."""
    (folder / "model.py").write_text(MODEL)
    (folder / "script.py").write_text(textwrap.dedent(script))
    words = (BIN, "run", *(options or ("--steps", "0:2")), "--", sys.executable, "script.py")
    result = support.run(*words, cwd=folder, PYTHONPATH=str(BUILD_DIR / "python"))
    assert result.returncode == 0, result.stderr
    return result


def profile_of(trace: Path) -> dict:
    return json.loads(support.layertrace_output("layers", trace))


def traces(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.pftrace*"))


def test_who_asks_for_torch_does_not_import_it(tmp_path: Path) -> None:
    """Libraries look whether torch is there before they import it."""
    result = record(
        tmp_path,
        """
        import importlib.util
        assert importlib.util.find_spec("torch") is not None
        assert importlib.util.find_spec("torch") is not None
        import model
        import torch
        assert type(torch.__loader__).__module__ != "sitecustomize"
        assert torch.__spec__.loader is torch.__loader__
        model.train(3)
        """,
    )
    assert traces(tmp_path) == ["script.pftrace"], result.stderr


def test_hooks_on_all_optimizers(tmp_path: Path) -> None:
    """PyTorch goes through them when the last step is recorded."""
    result = record(
        tmp_path,
        """
        from torch.optim.optimizer import register_optimizer_step_post_hook
        import model
        seen = []
        register_optimizer_step_post_hook(lambda *_: seen.append(1))
        model.train(5)
        print(len(seen))
        """,
    )
    assert result.stdout == "5\n"
    assert len(profile_of(tmp_path / "script.pftrace")["steps"]) == 2


def test_a_validation_before_the_training_is_none_of_its_steps(tmp_path: Path) -> None:
    record(
        tmp_path,
        """
        import torch
        from model import model, train
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with torch.no_grad():
            for _ in range(20):
                model(torch.randn(2, 4))
        train(4, optimizer=optimizer)
        """,
        "--steps",
        "1:3",
    )
    profile = profile_of(tmp_path / "script.pftrace")
    assert [step["index"] for step in profile["steps"]] == [1, 2]
    assert profile["layers"][0]["backward"]["host_ns"] > 0


def test_a_session_of_the_programs_own_comes_first(tmp_path: Path) -> None:
    """It is the program's that records, also when it starts late; `run` stands back and says so."""
    result = record(
        tmp_path,
        """
        import torch
        import layertrace
        from model import model, train
        model(torch.randn(2, 4))
        with layertrace.profile(model, output="own.pftrace") as session:
            train(1)
            session.step()
        train(3)
        """,
    )
    assert len(profile_of(tmp_path / "own.pftrace")["steps"]) == 1
    assert "it ends where the program's own session began" in result.stderr
    assert "no module was called" not in result.stderr


def test_a_session_of_the_programs_own_from_the_beginning(tmp_path: Path) -> None:
    result = record(
        tmp_path,
        """
        import layertrace
        from model import model, train
        with layertrace.profile(model, output="own.pftrace") as session:
            train(1)
            session.step()
        """,
    )
    assert traces(tmp_path) == ["own.pftrace"]
    assert "the program has a session of its own" in result.stderr


def test_a_training_in_a_forked_process(tmp_path: Path) -> None:
    result = record(
        tmp_path,
        """
        import multiprocessing
        from model import train
        process = multiprocessing.get_context("fork").Process(target=train, args=(4,))
        process.start()
        process.join()
        """,
        "--steps",
        "0:",
    )
    assert traces(tmp_path) == ["script.pftrace"], result.stderr
    assert len(profile_of(tmp_path / "script.pftrace")["steps"]) == 4
    assert "the trace is script.pftrace" in result.stderr


def test_a_module_without_parameters_is_no_training(tmp_path: Path) -> None:
    """Transforms of images are modules, too, and run in a loader's processes."""
    result = record(
        tmp_path,
        """
        import torch
        from model import train
        flatten = torch.nn.Flatten()
        class Images(torch.utils.data.Dataset):
            def __len__(self):
                return 4
            def __getitem__(self, i):
                return flatten(torch.ones(1, 2, 2))
        if __name__ == "__main__":
            for _ in torch.utils.data.DataLoader(Images(), num_workers=2):
                pass
            train(3)
        """,
    )
    assert traces(tmp_path) == ["script.pftrace"], result.stderr


def test_two_threads_that_begin_at_once(tmp_path: Path) -> None:
    record(
        tmp_path,
        """
        import threading
        import torch
        from model import model, train
        barrier = threading.Barrier(4)
        def call():
            barrier.wait()
            for _ in range(20):
                model(torch.randn(2, 4)).sum().backward()
        threads = [threading.Thread(target=call) for _ in range(4)]
        for each in threads: each.start()
        for each in threads: each.join()
        train(3)
        """,
    )
    assert traces(tmp_path) == ["script.pftrace"]
    assert len(profile_of(tmp_path / "script.pftrace")["steps"]) == 2


def test_what_a_function_holds_it_can_let_go_of(tmp_path: Path) -> None:
    """A second model is named by its variable; the caller's variables are not kept for that."""
    result = record(
        tmp_path,
        """
        import gc, weakref
        import torch
        from torch import nn
        def main():
            generator, critic = nn.Linear(4, 4), nn.Linear(4, 1)
            optimizer = torch.optim.SGD(generator.parameters(), lr=0.1)
            output = generator(torch.randn(2, 4))
            kept = weakref.ref(output)
            critic(output).sum().backward()
            optimizer.step()
            del output
            gc.collect()
            print(kept())
        main()
        """,
        "--steps",
        "0:",
    )
    assert result.stdout == "None\n"
    paths = [layer["path"] for layer in profile_of(tmp_path / "script.pftrace")["layers"]]
    assert "critic" in paths
