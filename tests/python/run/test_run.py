"""`layertrace run`: programs that were not changed, in Python and in C++."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import support
from support import BIN, BUILD_DIR, ENVIRONMENT, TIMEOUT_S

TRAINER = BUILD_DIR / "bin" / "unchanged_trainer"

SCRIPT = """
import os, sys
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 16), nn.ReLU(inplace=True))
        self.head = nn.Linear(16, 4)
    def forward(self, x):
        return self.head(self.body(x) + x)

def main(steps, end):
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    criterion = nn.CrossEntropyLoss()
    for i in range(steps):
        optimizer.zero_grad()
        loss = criterion(net(torch.randn(8, 16)), torch.randint(0, 4, (8,)))
        loss.backward()
        optimizer.step()
    print("loss", loss.item(), flush=True)
    if end == "raise":
        raise ValueError("as asked")
    if end == "wait":
        import time
        time.sleep(60)
    if end == "_exit":
        import time
        time.sleep(1)  # so that something is on the disk
        os._exit(4)
    sys.exit(int(end))

if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "0")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working directory with the script in it, and the same as a package."""
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "trainer").mkdir()
    (tmp_path / "trainer" / "__init__.py").touch()
    (tmp_path / "trainer" / "__main__.py").write_text(SCRIPT)
    return tmp_path


def run(
    folder: Path, *program: str | Path, options: tuple[str, ...] = (), **variables: str
) -> subprocess.CompletedProcess[str]:
    """Under `layertrace run`."""
    return support.run(BIN, "run", *options, "--", *program, cwd=folder, **variables)


def plain(folder: Path, *program: str | Path) -> subprocess.CompletedProcess[str]:
    """The same program by itself."""
    return support.run(*program, cwd=folder)


def profile_of(trace: Path) -> dict:
    """What the command reads from a trace."""
    return json.loads(support.layertrace_output("layers", trace))


def layers_of(profile: dict) -> dict[str, dict]:
    """By path."""
    return {layer["path"]: layer for layer in profile["layers"]}


def test_a_script(folder: Path) -> None:
    """Models, steps and phases are found; the program's output and exit code are its own."""
    alone = plain(folder, sys.executable, "train.py", "20", "3")
    recorded = run(folder, sys.executable, "train.py", "20", "3")
    assert (recorded.returncode, recorded.stdout) == (alone.returncode, alone.stdout)
    assert recorded.returncode == 3
    assert "Net · train.py" in recorded.stderr
    assert "body" in recorded.stderr
    assert recorded.stderr.endswith("layertrace: the trace is train.pftrace\n")
    assert not (folder / "train.pftrace.part").exists()

    profile = profile_of(folder / "train.pftrace")
    assert [step["index"] for step in profile["steps"]] == [7, 8, 9, 10, 11], "the default window"
    layers = layers_of(profile)
    assert {"", "body", "body.0", "body.1", "head"} <= layers.keys()
    assert layers[""]["name"] == "Net"
    assert all(layers[path]["calls"] == 1 for path in ("", "body", "body.0", "body.1", "head"))
    assert all(layers[path]["backward"]["host_ns"] > 0 for path in ("", "body.0", "body.1", "head"))
    assert layers["(CrossEntropyLoss)"]["registered"] is False
    assert profile["phases"]["optimizer"]["host_ns"] > 0
    assert profile["health"]["unattributed_nodes"] == {}
    assert profile["health"]["dropped"] == 0


@pytest.mark.parametrize(
    ("program", "output"),
    [
        (("-m", "trainer", "3"), "trainer.pftrace"),
        (("-c", "import train; train.main(3, '0')"), "python.pftrace"),
    ],
    ids=["module", "command line"],
)
def test_other_ways_to_start_python(folder: Path, program: tuple[str, ...], output: str) -> None:
    recorded = run(folder, sys.executable, *program, options=("--steps", "0:2"))
    assert recorded.returncode == 0, recorded.stderr
    assert len(profile_of(folder / output)["steps"]) == 2


def test_python_runs_it_too(folder: Path) -> None:
    """`python -m layertrace run train.py` is the same."""
    words = f"{sys.executable} -m layertrace run --steps 1:3 -o own.pftrace train.py 4 5"
    recorded = support.run(*words.split(), cwd=folder, PYTHONPATH=str(BUILD_DIR / "python"))
    assert recorded.returncode == 5
    assert [step["index"] for step in profile_of(folder / "own.pftrace")["steps"]] == [1, 2]


def test_an_exception(folder: Path) -> None:
    """It passes through, and the trace is complete."""
    alone = plain(folder, sys.executable, "train.py", "9", "raise")
    recorded = run(folder, sys.executable, "train.py", "9", "raise")
    assert recorded.returncode == alone.returncode == 1
    assert recorded.stdout == alone.stdout
    assert recorded.stderr.startswith(alone.stderr)
    profile = profile_of(folder / "train.pftrace")
    assert len(profile["steps"]) == 2
    assert profile["health"]["cut"] is False


def signalled(folder: Path, number: signal.Signals, *program: str | Path) -> tuple[int, str, bool]:
    """Its exit code and errors, and whether the trace was there before the signal."""
    with subprocess.Popen(
        [*map(str, program), sys.executable, "train.py", "20", "wait"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=ENVIRONMENT,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # also in the background
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("loss")
        was_there = (folder / "train.pftrace").exists()
        if number == signal.SIGINT:
            os.killpg(process.pid, number)  # as a terminal does
        else:
            process.send_signal(number)
        _, errors = process.communicate(timeout=TIMEOUT_S)
    return process.returncode, errors, was_there


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal(folder: Path, number: signal.Signals) -> None:
    """Ctrl-C ends the program as it would have; the file was complete before."""
    alone, _, _ = signalled(folder, number)  # PyTorch's own handlers may make it 1, and not −2
    assert alone in (-number, 1)
    code, errors, was_there = signalled(folder, number, BIN, "run", "--")
    assert was_there, "complete while the job goes on"
    assert code == alone
    if number == signal.SIGINT:
        assert "KeyboardInterrupt" in errors
        assert "the trace is train.pftrace" in errors
    assert len(profile_of(folder / "train.pftrace")["steps"]) == 5


def test_what_is_ignored_stays_ignored(folder: Path) -> None:
    """Under nohup a terminal that closes ends neither the command nor the program."""
    program = (
        "import os, signal; os.kill(os.getppid(), signal.SIGHUP);"
        "print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)"
    )
    nohup = ("sh", "-c", 'trap "" HUP; exec "$@"', "sh")
    recorded = support.run(*nohup, BIN, "run", "--", sys.executable, "-c", program, cwd=folder)
    assert (recorded.returncode, recorded.stdout) == (0, "True\n"), recorded.stderr


def test_a_process_that_vanishes(folder: Path) -> None:
    """What was recorded until then is there, and is said to be."""
    recorded = run(folder, sys.executable, "train.py", "9", "_exit")
    assert recorded.returncode == 4
    assert "train.pftrace.part" in recorded.stderr
    assert profile_of(folder / "train.pftrace.part")["health"]["cut"] is True


def test_too_few_steps(folder: Path) -> None:
    recorded = run(folder, sys.executable, "train.py", "3")
    assert recorded.returncode == 0
    assert "ended after 3 steps, and the first 7 are not recorded" in recorded.stderr
    assert "--steps 0:5" in recorded.stderr


def test_a_run_that_records_nothing_leaves_an_earlier_trace_alone(folder: Path) -> None:
    run(folder, sys.executable, "train.py", "3", options=("--steps", "0:2"))
    earlier = (folder / "train.pftrace").read_bytes()
    recorded = run(folder, sys.executable, "train.py", "3", options=("--steps", "50:60"))
    assert recorded.returncode == 0
    assert "train.pftrace before is left as it was" in recorded.stderr
    assert (folder / "train.pftrace").read_bytes() == earlier
    assert not (folder / "train.pftrace.part").exists()


def test_without_gradients_each_call_is_a_step(folder: Path) -> None:
    (folder / "infer.py").write_text(
        textwrap.dedent("""
        import torch
        from torch import nn
        model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        with torch.inference_mode():
            for _ in range(20):
                model(torch.ones(2, 4))
        """)
    )
    recorded = run(folder, sys.executable, "infer.py")
    assert recorded.returncode == 0
    profile = profile_of(folder / "infer.pftrace")
    assert [step["index"] for step in profile["steps"]] == [7, 8, 9, 10, 11]
    assert layers_of(profile)["0"]["calls"] == 1


def test_two_models_and_two_optimizers(folder: Path) -> None:
    """The second model is named by its variable; a step has both optimizers in it."""
    (folder / "gan.py").write_text(
        textwrap.dedent("""
        import torch
        from torch import nn
        generator, discriminator = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 1))
        g = torch.optim.SGD(generator.parameters(), 0.1)
        d = torch.optim.Adam(discriminator.parameters(), 0.1)
        for _ in range(8):
            for optimizer in (d, g):
                optimizer.zero_grad()
                discriminator(generator(torch.randn(2, 4))).sum().backward()
                optimizer.step()
        """)
    )
    recorded = run(folder, sys.executable, "gan.py", options=("--steps", "2:6"))
    assert recorded.returncode == 0
    profile = profile_of(folder / "gan.pftrace")
    assert len(profile["steps"]) == 4
    layers = layers_of(profile)
    assert layers[""]["type"] == "Linear"
    assert layers[""]["calls"] == layers["discriminator"]["calls"] == 2
    assert layers["discriminator.0"]["calls"] == 2


@pytest.mark.parametrize("launcher", ["torchrun", "accelerate"])
def test_launchers(folder: Path, launcher: str) -> None:
    """One file per rank, the rank in its name."""
    bin_folder = Path(sys.executable).parent
    words = {
        # At a port that is free: the default one may be another's.
        "torchrun": "torchrun --standalone --nproc-per-node 2 train.py 3",
        # Of its launchers, the one that starts two processes without being asked for devices.
        "accelerate": "accelerate launch --multi_gpu --num_processes 2 --num_machines 1 "
        "--main_process_port 0 --mixed_precision no --dynamo_backend no "
        "--num_cpu_threads_per_process 1 train.py 3",
    }[launcher]
    program, *arguments = words.split()
    recorded = run(folder, bin_folder / program, *arguments, options=("--steps", "0:2"))
    assert recorded.returncode == 0, recorded.stderr
    traces = sorted(path.name for path in folder.glob("*.pftrace*"))
    assert traces == ["train.rank0.pftrace", "train.rank1.pftrace"], recorded.stderr
    assert recorded.stderr.count("Net · train.py") == 1, "one tree, not one per rank"
    for name in traces:
        assert len(profile_of(folder / name)["steps"]) == 2
    assert "no module was called" not in recorded.stderr


def test_ranks_of_slurm_and_mpi(folder: Path) -> None:
    for variables, name in (
        ({"SLURM_PROCID": "3", "SLURM_NTASKS": "8"}, "train.rank3.pftrace"),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, "train.rank1.pftrace"),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, "train.pftrace"),
    ):
        run(folder, sys.executable, "train.py", "2", options=("--steps", "0:1"), **variables)
        assert (folder / name).exists()


def test_a_program_without_torch(folder: Path) -> None:
    recorded = run(folder, sys.executable, "-c", "print('hello')")
    assert (recorded.returncode, recorded.stdout) == (0, "hello\n")
    assert "neither imported torch in Python nor links LibTorch" in recorded.stderr
    recorded = run(folder, "sh", "-c", "exit 9")
    assert recorded.returncode == 9
    assert "nothing is recorded" in recorded.stderr


def test_a_program_that_is_not_there(folder: Path) -> None:
    recorded = run(folder, "no-such-program")
    assert recorded.returncode == 127
    assert recorded.stderr == "layertrace: cannot run no-such-program: No such file or directory\n"


def test_the_users_sitecustomize_is_imported(folder: Path) -> None:
    (folder / "sitecustomize.py").write_text("print('mine')")
    recorded = run(folder, sys.executable, "-c", "pass", PYTHONPATH=str(folder))
    assert recorded.stdout == "mine\n"


def test_what_cannot_be_written(folder: Path) -> None:
    """The program runs all the same."""
    (folder / "run.pftrace").mkdir()
    options = ("-o", str(folder / "run.pftrace"))
    recorded = run(folder, sys.executable, "train.py", "9", "3", options=options)
    assert recorded.returncode == 3
    assert recorded.stdout.startswith("loss")
    assert "cannot write" in recorded.stderr


def test_a_folder_that_is_not_there(folder: Path) -> None:
    """That is told before the program begins, and not when hours of training are over."""
    options = ("-o", str(folder / "none" / "run.pftrace"))
    recorded = run(folder, sys.executable, "train.py", "9", "3", options=options)
    assert (recorded.returncode, recorded.stdout) == (2, "")
    assert "is no folder. Create it first, or choose another path" in recorded.stderr


def test_steps_that_make_no_sense(folder: Path) -> None:
    recorded = run(folder, sys.executable, "train.py", options=("--steps", "9:3"))
    assert recorded.returncode == 2
    assert "as in 5:10" in recorded.stderr


def test_an_unchanged_binary(folder: Path) -> None:
    """LibTorch's own layers by name; what the model does between them is inferred; what comes after
    the last is nobody's, and is said to be."""
    alone = plain(folder, TRAINER, "15", "7")
    recorded = run(folder, TRAINER, "15", "7")
    assert (recorded.returncode, recorded.stdout) == (alone.returncode, alone.stdout)
    assert recorded.returncode == 7
    assert "the trace is unchanged_trainer.pftrace" in recorded.stderr
    assert "(inferred)" in recorded.stderr

    profile = profile_of(folder / "unchanged_trainer.pftrace")
    assert [step["index"] for step in profile["steps"]] == [7, 8, 9, 10, 11]
    layers = layers_of(profile)
    assert list(layers) == ["", "conv", "fc1", "block", "block.a", "block.b", "fc2"]
    assert layers[""]["type"] == "Net"
    assert layers["block"]["type"] == "Block"
    for path in ("conv", "fc1", "block.a", "block.b", "fc2"):
        assert layers[path]["calls"] == 1
        assert layers[path]["backward"]["host_ns"] > 0
    # Between the layers: max_pool2d, relu, view and relu of the model (the second relu and its
    # relatives are before block.a, whose lowest common holder with fc1 is the model), relu of the
    # block; the block's addition comes after its last layer and before fc2, and so is the model's.
    assert layers[""]["forward"]["self_activity_ns"] > 0
    assert layers["block"]["forward"]["self_activity_ns"] > 0
    assert profile["health"]["inferred"] > 0
    causes = profile["health"]["unattributed"]
    after = next(value for cause, value in causes.items() if cause.startswith("after the last"))
    assert {"aten::_log_softmax", "aten::nll_loss_forward"} <= after["names"].keys()
    nodes = profile["health"]["unattributed_nodes"]
    assert {name for cause in nodes.values() for name in cause["names"]} == {
        "LogSoftmaxBackward0",
        "NllLossBackward0",
    }


def test_an_unchanged_binary_in_a_shell_script(folder: Path) -> None:
    """Found below a shell; its own children start without us."""
    script = f"{TRAINER} 4 0 && printenv LD_PRELOAD"
    recorded = run(folder, "sh", "-c", script, options=("--steps", "1:3", "-o", "x.pftrace"))
    assert recorded.returncode == 0
    assert recorded.stdout.splitlines()[-1].endswith("liblayertrace_run.so")
    assert [step["index"] for step in profile_of(folder / "x.pftrace")["steps"]] == [1, 2]


def test_an_unchanged_binary_that_throws(folder: Path) -> None:
    alone = plain(folder, TRAINER, "9", "throw")
    recorded = run(folder, TRAINER, "9", "throw")
    assert recorded.returncode == alone.returncode == -signal.SIGABRT
    assert recorded.stdout == alone.stdout
    assert len(profile_of(folder / "unchanged_trainer.pftrace")["steps"]) == 2
