#!/usr/bin/env python3
"""Writes one wrapper for each `torch::nn::*Impl::forward*` that LibTorch exports.

LibTorch's C++ modules have no hooks, but their forward functions are exported, and a library that
is looked up before LibTorch can stand in for them. The list is taken from the library itself, so
that no layer is forgotten and a newer LibTorch's layers are covered by building again. Return types
come from LibTorch's own headers (see interposed_layers.cc).
"""

import argparse
import pathlib
import re
import subprocess

# Parts of a forward that are only called from inside one.
INTERNAL = {"forward_helper"}
FORWARD = re.compile(
    r"torch::nn::(?P<owner>\w+Impl(?:<.*>)?)::(?P<method>forward\w*)\((?P<params>.*)\)$"
)


def symbols(nm, library):
    """Pairs of mangled and demangled names of the library's functions."""

    def names(*flags):
        out = subprocess.run(
            [nm, "-D", "-p", "--defined-only", *flags, str(library)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        return [line.split(" ", 2)[1:] for line in out.splitlines()]

    for (kind, mangled), (_, demangled) in zip(names(), names("-C"), strict=True):
        if kind in "TW":
            yield mangled.split("@")[0], re.sub(r"@@?\w+$", "", demangled)


def split_parameters(text):
    """Splits at the commas that are in no bracket."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += c in "<("
        depth -= c in ">)"
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def wrapper(mangled, demangled):
    match = FORWARD.match(demangled)
    if not match or match["method"] in INTERNAL:
        return None
    types = split_parameters(match["params"])
    parameters = ", ".join(f"{t} a{i}" for i, t in enumerate(types))
    arguments = ", ".join(
        f"a{i}" if t.endswith("&") else f"std::move(a{i})" for i, t in enumerate(types)
    )
    seen = "".join(f", a{i}" for i in range(len(types)))
    owner, method = match["owner"], match["method"]
    prefix = "template <> " if "<" in owner else ""
    template_arguments = ", ".join(["Result", owner, *types])
    call = f"this->{method}({arguments})"
    return (
        f"{prefix}auto {owner}::{method}({parameters}) -> decltype({call}) {{\n"
        f"  using Result = decltype({call});\n"
        f'  static const auto next = next_function<{template_arguments}>("{mangled}");\n'
        f"  InterposedScope scope(this{seen});\n"
        f"  return scope.output(next(this, {arguments}));\n"
        f"}}\n"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--library", required=True, type=pathlib.Path, help="libtorch_cpu.so")
    parser.add_argument("--output", required=True, type=pathlib.Path)
    args = parser.parse_args()
    wrappers = sorted(filter(None, (wrapper(*pair) for pair in symbols(args.nm, args.library))))
    if len(wrappers) < 50:
        raise SystemExit(
            f"{args.library} exports only {len(wrappers)} forward functions: is it libtorch_cpu.so?"
        )
    title = (
        f"// {len(wrappers)} forward functions of {args.library.name}, by generate_layers.py.\n\n"
    )
    text = title + "\n".join(wrappers)
    args.output.parent.mkdir(parents=True, exist_ok=True)
    if not args.output.exists() or args.output.read_text() != text:
        args.output.write_text(text)


if __name__ == "__main__":
    main()
