"""A compile database for clang-tidy, from CMake's, and the sources that it checks as one.

    tidy_database.py BUILD [--shipped]

Reads BUILD/compile_commands.json and writes BUILD/tidy/compile_commands.json: without GCC's
precompiled headers, which clang cannot read, and with one entry for each of our own sources.
Sources of one folder that CMake compiles together (a unity build) are also joined in one file,
whose name is printed: most of clang-tidy's time goes into the headers that they share. Sources
that are built alone are printed as they are. With --shipped, tests and benchmarks with LibTorch
are not printed: they take as long as all others.
"""

import json
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path.cwd()
SLOW = re.compile(r"^(tests/torch|tests/faults|bench)/")


def main() -> None:
    build = ROOT / sys.argv[1]
    tidy = build / "tidy"
    shipped_only = "--shipped" in sys.argv[2:]
    entries: dict[Path, dict] = {}
    checked: list[tuple[bool, Path]] = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        command = re.sub(
            r"-include \S*cmake_pch\.hxx|-Winvalid-pch|-fpch-preprocess", "", entry["command"]
        )
        for folder, sources in by_folder(Path(entry["file"])).items():
            if ROOT not in folder.parents or is_others(folder.relative_to(ROOT)):
                continue
            for source in sources:
                entries[source] = entry | {
                    "file": str(source),
                    "command": command.replace(entry["file"], str(source)),
                }
            if shipped_only and SLOW.match(f"{folder.relative_to(ROOT)}/"):
                continue
            file = sources[0]
            if len(sources) > 1:
                file = join(sources, tidy / folder.relative_to(ROOT), len(checked))
                entries[file] = entry | {
                    "file": str(file),
                    "command": command.replace(entry["file"], str(file)),
                }
            checked.append(("torch" in folder.parts, file.relative_to(ROOT)))
    tidy.mkdir(exist_ok=True)
    (tidy / "compile_commands.json").write_text(json.dumps(list(entries.values())))
    for _, file in sorted(
        checked, reverse=True
    ):  # the slowest first, so that none is left over at the end
        print(file)


def is_others(folder: Path) -> bool:
    """Installed, or made by a build."""
    return folder.parts[0].startswith((".", "build"))


def by_folder(file: Path) -> dict[Path, list[Path]]:
    sources = [file]
    if file.parent.name == "Unity":
        sources = [Path(line) for line in re.findall(r'#include "(.*)"', file.read_text())]
    folders = defaultdict(list)
    for source in sources:
        folders[source.parent].append(source)
    return folders


def join(sources: list[Path], folder: Path, number: int) -> Path:
    """A file that includes them all, under the same .clang-tidy files as they."""
    folder.mkdir(parents=True, exist_ok=True)
    for above in [sources[0].parent, *sources[0].parent.parents]:
        if above == ROOT:
            break
        if (above / ".clang-tidy").exists():
            there = ROOT / sys.argv[1] / "tidy" / above.relative_to(ROOT) / ".clang-tidy"
            there.parent.mkdir(parents=True, exist_ok=True)
            there.write_text((above / ".clang-tidy").read_text())
    file = folder / f"joined_{number}.cc"
    file.write_text(
        "".join(
            f'#include "{source}"  // NOLINT(bugprone-suspicious-include)\n' for source in sources
        )
    )
    return file


if __name__ == "__main__":
    main()
