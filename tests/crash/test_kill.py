"""Case 7: kill -9 at random moments loses nothing that was acknowledged, and leaves both legs and the store agreed."""

from pathlib import Path

import pytest

from vimbank.eval.crash import crash_rounds


@pytest.mark.crash
@pytest.mark.timeout(300)
def test_case_7_nothing_acknowledged_is_lost_in_twenty_kills(tmp_path: Path) -> None:
    report = crash_rounds(tmp_path, rounds=20, seed=7)
    assert report.rounds == 20
    assert report.acknowledged > 200
    assert (report.lost, report.half, report.unclean) == (0, 0, 0)
