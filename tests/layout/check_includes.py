#!/usr/bin/env python3
"""Fails on an #include that points the wrong way between the folders of layertrace.

    check_includes.py [ROOT]

Prints one line per violation and exits with 1 if there is any. The table below is the architecture:
which folder may include which. Public headers (<layertrace/…>) may be included from everywhere.
"""

import os
import re
import sys
from pathlib import Path

# The longest folder that holds a file decides. A folder may always include itself.
ALLOWED: dict[str, set[str]] = {
    "include/layertrace": set(),
    "src/base": set(),
    "src/record": {"src/base"},
    "src/capture": {"src/base", "src/record"},
    "src/attribute": {"src/base", "src/record"},
    "src/flops": {"src/base"},
    "src/roofline": {"src/base"},
    "src/report": {"src/base", "src/attribute", "src/roofline"},
    "src/perfetto": {"src/base", "src/record", "src/attribute"},
    "src/kineto": {"src/base", "src/record", "src/attribute"},
    "src/session": {
        "src/base",
        "src/record",
        "src/capture",
        "src/attribute",
        "src/perfetto",
        "src/kineto",
        "src/flops",
        "src/report",
        "src/roofline",
    },
    "src/torch": {
        "src/base",
        "src/record",
        "src/capture",
        "src/session",
        "src/flops",
        "src/roofline",
    },
    "cuda": {"src/base", "src/record", "src/capture"},
    "cuda/simgpu": set(),
    "cuda/activity": {"src/base", "src/record", "src/capture"},
    "tools": {"cuda/simgpu", "cuda/activity"},  # how it is set up; what there is
    "python": set(),
    "examples": set(),
    "examples/cuda": set(),
    "tests": {"src", "cuda", "tools"},
    "tests/consumer": set(),
    "tests/cuda": {"src", "cuda", "tools"},
    "bench": {"src", "cuda", "examples"},
}

# Headers of others that only some folders may see.
RESTRICTED: list[tuple[str, re.Pattern[str], set[str]]] = [
    (
        "a vendor header",
        re.compile(
            r"(cuda|cupti|nvtx|cublas|cudnn|nccl|nvml|nvrtc|generated_cuda)[^/]*(\.hp?p?$|/)"
        ),
        {"cuda", "tests/cuda", "examples/cuda", "bench"},
    ),
    ("the Perfetto SDK", re.compile(r"perfetto(\.h$|/)"), {"src/perfetto"}),
    (
        "a Torch header",
        re.compile(r"(torch|ATen|c10|caffe2)(\.h$|/)"),
        {"src/torch", "examples", "tests", "bench"},
    ),
]

SUFFIXES = {".h", ".hpp", ".cc", ".cpp", ".cu", ".cuh", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def is_within(folder: str, parent: str) -> bool:
    return folder == parent or folder.startswith(parent + "/")


def rule_for(file: str) -> str | None:
    """The longest folder of the table that holds the file."""
    matches = [folder for folder in ALLOWED if is_within(file, folder)]
    return max(matches, key=len, default=None)


class Tree:
    def __init__(self, root: Path) -> None:
        self.root = root

    def files(self) -> list[str]:
        found = []
        for top in sorted({folder.split("/")[0] for folder in ALLOWED}):
            for path in sorted((self.root / top).rglob("*")):
                if path.suffix in SUFFIXES and "node_modules" not in path.parts and path.is_file():
                    found.append(path.relative_to(self.root).as_posix())
        return found

    def resolve(self, file: str, name: str) -> str | None:
        """The file of ours that an include names, or None for somebody else's."""
        folder = Path(file).parent
        for base in (folder, Path("src"), Path("include"), Path(), Path("tests"), Path("tools")):
            if (self.root / base / name).is_file():
                return os.path.normpath(base / name)
        first = name.split("/")[0]
        if (self.root / "src" / first).is_dir() or f"src/{first}" in ALLOWED:
            return f"src/{name}"  # it does not exist (yet), but this is where it would be
        return None

    def resolve_angled(self, name: str) -> str | None:
        """The same for <…>: src/ is on the include path, and so <base/clock.h> would compile."""
        return f"src/{name}" if (self.root / "src" / name).is_file() else None

    def check_include(self, file: str, quote: str, name: str) -> str | None:
        """What is wrong with it, or None."""
        rule = rule_for(file)
        if rule is None:
            folder = Path(file).parent.as_posix()
            return (
                f"no rule says what {folder} may include: add one to ALLOWED in check_includes.py"
            )
        if ".." in name.split("/") and rule not in ("tests", "bench"):
            return f'"{name}" climbs out of its folder: write it relative to src/'
        if name.startswith("layertrace/"):
            return None if quote == "<" else f"public headers are written <{name}>"

        target = self.resolve(file, name) if quote == '"' else self.resolve_angled(name)
        if target is None:
            for what, pattern, folders in RESTRICTED:
                if pattern.match(name) and not any(is_within(rule, folder) for folder in folders):
                    return f"{what} ({name}) belongs to {', '.join(sorted(folders))} only"
            return None

        target_rule = rule_for(target) or Path(target).parent.as_posix()
        if target_rule == rule or any(is_within(target_rule, folder) for folder in ALLOWED[rule]):
            return None
        allowed = ", ".join(sorted(ALLOWED[rule])) or "public headers"
        return f'"{name}" is of {target_rule}; {rule} may include {allowed} only'

    def violations(self) -> list[str]:
        found = []
        for file in self.files():
            lines = (self.root / file).read_text(encoding="utf-8").splitlines()
            for number, line in enumerate(lines, start=1):
                match = INCLUDE.match(line)
                problem = self.check_include(file, *match.groups()) if match else None
                if problem:
                    found.append(f"{file}:{number}: {problem}")
        return found


def main(arguments: list[str]) -> int:
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parents[2]
    tree = Tree(root)
    if not tree.files():
        print(f"{root} has no sources", file=sys.stderr)
        return 1
    violations = tree.violations()
    print(
        "\n".join(violations)
        if violations
        else f"{len(tree.files())} files, all includes point the right way"
    )
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
