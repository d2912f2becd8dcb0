"""Web addresses in place of files: refused in one line, with how to download; nothing is fetched."""

from __future__ import annotations

from pathlib import Path

import pytest

import graph2vid as g2v
from graph2vid.errors import InputError


@pytest.mark.parametrize("video", ["https://youtu.be/abc", Path("https://youtu.be/abc"), "HTTP://a.b/c.mp4"])
def test_an_address_is_refused_before_any_work(video: str | Path) -> None:
    with pytest.raises(InputError, match=r"is a web address: download the video first \(yt-dlp") as error:
        g2v.ground("no such procedure.txt", video)
    assert "\n" not in str(error.value)
    with pytest.raises(InputError, match="is a web address"):
        g2v.ground("p.txt", "video.mp4", captions=video)
