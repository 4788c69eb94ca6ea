#!/usr/bin/env python3
"""The include check finds what it is there to find."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

import check_includes

HEADERS = [
    "include/layertrace/profile.h",
    "src/base/clock.h",
    "src/record/record.h",
    "src/capture/recorder.h",
    "src/attribute/span.h",
    "src/report/text.h",
    "src/perfetto/trace_writer.h",
    "src/session/session_state.h",
    "src/torch/modules.h",
    "cuda/cupti.h",
    "tools/view.h",
    "tests/support/fake_clock.h",
    "examples/cpp/train.cc",
]


class CheckIncludes(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)
        for header in HEADERS:
            self.write(header, "#pragma once\n")

    def write(self, file: str, text: str) -> None:
        path = self.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def violations(self, file: str, include: str) -> list[str]:
        self.write(
            file,
            f"// A comment may say #include anything.\n#include <vector>\n#include {include}\n",
        )
        found = check_includes.Tree(self.root).violations()
        (self.root / file).unlink()
        return found

    def test_accepts_the_arrows_of_the_design(self) -> None:
        for file, include in [
            ("src/base/x.cc", "<layertrace/profile.h>"),
            ("src/base/x.cc", '"base/clock.h"'),
            ("src/record/x.cc", '"base/clock.h"'),
            ("src/capture/x.cc", '"record/record.h"'),
            ("src/attribute/x.cc", '"record/record.h"'),
            ("src/report/x.cc", '"attribute/span.h"'),
            ("src/perfetto/x.cc", '"attribute/span.h"'),
            ("src/perfetto/x.cc", "<perfetto.h>"),
            ("src/perfetto/x.cc", '"perfetto.h"'),
            ("src/session/x.cc", '"perfetto/trace_writer.h"'),
            ("src/torch/x.cc", '"session/session_state.h"'),
            ("src/torch/x.cc", "<torch/torch.h>"),
            ("src/torch/x.cc", "<ATen/cuda/CUDAContext.h>"),
            ("src/torch/x.cc", '"layers.inc"'),
            ("cuda/x.cc", '"capture/recorder.h"'),
            ("cuda/x.cc", "<cupti.h>"),
            ("tools/x.cc", '"view.h"'),
            ("tools/x.cc", "<layertrace/profile.h>"),
            ("examples/cpp/x.cc", "<torch/torch.h>"),
            ("tests/torch/x.cc", '"torch/modules.h"'),
            ("tests/torch/x.cc", "<torch/torch.h>"),
            ("tests/record/x.cc", '"support/fake_clock.h"'),
            ("tests/consumer/main.cc", "<torch/torch.h>"),
            ("bench/x.cc", '"record/record.h"'),
            ("bench/x.cc", '"../examples/cpp/train.cc"'),
        ]:
            with self.subTest(file=file, include=include):
                self.assertEqual(self.violations(file, include), [])

    def test_finds_arrows_that_point_the_wrong_way(self) -> None:
        for file, include in [
            ("src/base/x.cc", '"record/record.h"'),
            ("src/base/x.cc", "<record/record.h>"),
            ("src/record/x.cc", '"capture/recorder.h"'),
            ("src/record/x.cc", '"capture/not_written_yet.h"'),
            ("src/capture/x.cc", '"attribute/span.h"'),
            ("src/capture/x.cc", '"torch/modules.h"'),
            ("src/attribute/x.cc", '"capture/recorder.h"'),
            ("src/report/x.cc", '"record/record.h"'),
            ("src/perfetto/x.cc", '"report/text.h"'),
            ("src/session/x.cc", '"torch/modules.h"'),
            ("src/torch/x.cc", '"attribute/span.h"'),
            ("src/torch/x.cc", '"cuda/cupti.h"'),
            ("cuda/x.cc", '"attribute/span.h"'),
            ("cuda/simgpu/x.cc", '"base/clock.h"'),
            ("tools/x.cc", '"session/session_state.h"'),
            ("python/x.cc", '"base/clock.h"'),
            ("tests/consumer/main.cc", '"base/clock.h"'),
            ("include/layertrace/x.h", '"base/clock.h"'),
            ("include/layertrace/x.h", '"../../src/base/clock.h"'),
            ("bench/x.cc", '"../tools/view.h"'),
        ]:
            with self.subTest(file=file, include=include):
                found = self.violations(file, include)
                self.assertEqual(len(found), 1, found)
                self.assertTrue(found[0].startswith(f"{file}:3: "), found)

    def test_finds_headers_of_others_where_they_do_not_belong(self) -> None:
        for file, include in [
            ("src/torch/x.cc", "<cupti.h>"),
            ("src/capture/x.cc", "<cuda_runtime.h>"),
            ("src/capture/x.cc", "<nvtx3/nvToolsExt.h>"),
            ("tests/torch/x.cc", "<cuda.h>"),
            ("src/session/x.cc", "<perfetto.h>"),
            ("src/report/x.cc", '"perfetto.h"'),
            ("tests/perfetto/x.cc", "<perfetto.h>"),
            ("src/capture/x.cc", "<torch/torch.h>"),
            ("src/capture/x.cc", "<ATen/ATen.h>"),
            ("src/session/x.cc", "<c10/util/Exception.h>"),
            ("include/layertrace/x.h", "<torch/torch.h>"),
            ("tools/x.cc", "<torch/torch.h>"),
        ]:
            with self.subTest(file=file, include=include):
                found = self.violations(file, include)
                self.assertEqual(len(found), 1, found)
                self.assertIn("belongs to", found[0])

    def test_wants_public_headers_in_angle_brackets(self) -> None:
        self.assertIn(
            "written <layertrace/profile.h>",
            self.violations("tools/x.cc", '"layertrace/profile.h"')[0],
        )

    def test_wants_a_rule_for_a_new_folder(self) -> None:
        self.assertIn("no rule", self.violations("src/new/x.cc", '"base/clock.h"')[0])

    def test_an_empty_tree_is_no_success(self) -> None:
        with tempfile.TemporaryDirectory() as empty, contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(check_includes.main([empty]), 1)


if __name__ == "__main__":
    unittest.main()
