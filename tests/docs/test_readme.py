"""The README's examples are files that the tests run: below a comment that names one stands it."""

import os
import pathlib
import re

import pytest

ROOT = pathlib.Path(os.environ["LAYERTRACE_SOURCE_DIR"])
MARKED = re.compile(r"<!-- (\S+) -->\n```\w*\n(.*?)```\n", re.S)
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def marked_blocks():
    return [
        (doc.name, name, text)
        for doc in DOCUMENTS
        for name, text in MARKED.findall(doc.read_text())
    ]


def test_readme_has_its_examples():
    names = {name for doc, name, _ in marked_blocks() if doc == "README.md"}
    assert {"examples/cpp/quick_start.cc", "traces/residual_cnn_counted_gpu.tree.txt"} <= names
    of_cpu = {name for doc, name, _ in marked_blocks() if doc == "tree.md"}
    assert "traces/residual_cnn.tree.txt" in of_cpu


@pytest.mark.parametrize("document, name, text", marked_blocks())
def test_block_is_the_file(document, name, text):
    assert text == (ROOT / name).read_text(), (
        f"{document}: copy {name} into the block below its comment"
    )


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.name)
def test_links_lead_somewhere(document):
    prose = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", prose):
        if "://" not in target:
            assert (document.parent / target).exists(), f"{document.name} links to {target}"
