"""Model cards on the simulated GPU: what is counted is as on the host, and times are its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from on_simgpu import REAL_GPU, needs_simgpu, result_of

pytestmark = needs_simgpu


def values(card: dict[str, Any]) -> dict[str, float]:
    return {metric["key"]: metric["value"] for metric in card["metrics"]}


def test_cards_of_a_model_on_the_gpu(tmp_path: Path) -> None:
    result = result_of(tmp_path, "carded.py")
    host, copied, moved = result["cards"]
    assert [card["device"] for card in result["cards"]] == ["cpu", "cuda:0", "cuda:0"]
    assert result["stayed"] == ["cpu"], "a card elsewhere is of a copy"
    for card in (copied, moved):
        for key in ("macs", "parameters", "model_size"):
            assert values(card)[key] == values(host)[key]
        assert values(card)["memory_footprint"] > values(card)["model_size"]
        assert values(card)["execution_time"] > 0
        assert card["batch_size"] == 8
    verdicts = {row["key"]: row["models"][1]["verdict"] for row in result["comparison"]["rows"]}
    assert verdicts["macs"] == "same"
    assert "the models ran on different devices" in result["comparison"]["notes"]
    if not REAL_GPU:
        assert moved["simulated"]
        assert "no time is a real GPU's" in result["text"]
        assert ["*Simulated: timed on a " in each for each in result["tables"]] == [
            False,
            True,
            True,
        ]
        assert verdicts["execution_time"] == verdicts["throughput"] == "unknown"
