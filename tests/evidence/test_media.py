"""Videos and sound: exact times, and files that are odd, broken, or not videos."""

from __future__ import annotations

import shutil
import struct
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import films
from graph2vid.errors import FormatError, Graph2VidError, InputError
from graph2vid.evidence.media import audio, frames, probe

pytest.importorskip("av", reason="needs graph2vid[media]")

ROOT = Path(__file__).parent.parent.parent


def heard(path: Path, rate: int = 16_000) -> NDArray[np.float32]:
    return np.concatenate([*audio(path, rate), np.zeros(0, dtype=np.float32)])


def seen(path: Path, rate: float) -> list[tuple[float, int]]:
    return [(seconds, films.level(image)) for seconds, image in frames(path, rate=rate)]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A film of 4 s at 10 frames per second with clicks at 0.5, 1.5, …"""
    path = tmp_path_factory.mktemp("films") / "plain.mp4"
    return films.film(path, [i / 10 for i in range(40)], sound=films.clicks(4.0, 44_100))


def test_what_is_in_a_film(plain: Path) -> None:
    info = probe(plain)
    assert info.duration == pytest.approx(4.0, abs=0.05)
    assert info.has_audio and info.has_video and not info.broken
    assert (info.width, info.height, info.rotation) == (48, 32, 0)
    assert info.frame_rate == pytest.approx(10.0) and not info.variable_rate
    assert info.start == pytest.approx(0.0, abs=0.03)


def test_sound_is_where_it_is_heard(plain: Path) -> None:
    for rate in (16_000, 22_050):
        chunks = list(audio(plain, rate))
        assert all(chunk.dtype == np.float32 and chunk.ndim == 1 for chunk in chunks)
        sound = np.concatenate(chunks)
        assert len(sound) / rate == pytest.approx(4.0, abs=0.05)
        np.testing.assert_allclose(films.onsets(sound, rate), [0.5, 1.5, 2.5, 3.5], atol=0.004)


def test_chunks_are_of_ten_seconds(tmp_path: Path) -> None:
    path = films.film(tmp_path / "a.wav", sound=films.clicks(25.0, 8_000), rate=8_000, sound_codec="pcm_s16le")
    assert [len(chunk) for chunk in audio(path)] == [160_000, 160_000, pytest.approx(80_000, abs=20)]


@pytest.mark.parametrize("rate", [1.0, 2.5, 10.0, 30.0, 0.3])
def test_frames_are_those_on_the_screen(plain: Path, rate: float) -> None:
    found = seen(plain, rate)
    assert [seconds for seconds, _ in found] == [i / rate for i in range(len(found))]
    assert 3.9 - 1 / rate <= found[-1][0] < 4.0  # how long the last frame stays is not always written down
    assert [frame for _, frame in found] == [int(seconds * 10 + 1e-6) for seconds, _ in found]


def test_variable_frame_rate(tmp_path: Path) -> None:
    times = [0.0, 0.04, 0.08, 2.0, 2.01, 5.5, 6.0, 6.04]
    path = films.film(tmp_path / "a.mkv", times)
    info = probe(path)
    assert info.variable_rate and not info.has_audio and info.frame_rate == pytest.approx(7 / 6.04, rel=0.01)
    found = dict(seen(path, 2.0))
    expected = {i / 2: max(k for k, begins in enumerate(times) if begins <= i / 2) for i in range(13)}
    assert found == expected


@pytest.mark.parametrize("suffix", [".ts", ".mkv", ".mp4"])
def test_a_clock_that_does_not_start_at_zero(tmp_path: Path, suffix: str) -> None:
    times = [100.0 + i / 10 for i in range(40)]
    path = films.film(tmp_path / f"a{suffix}", times, sound=films.clicks(4.0, 44_100), sound_start=100.0)
    info = probe(path)
    if suffix != ".mp4":  # which stores a clock that starts at 0
        assert info.start > 99
    assert info.duration == pytest.approx(4.0, abs=0.15) and not info.broken
    found = seen(path, 5.0)
    offset = 0.1  # at most: sound may begin a little before the first frame
    assert found[0][0] <= 0.2 and all(abs(seconds * 10 - frame) <= 10 * offset + 1 for seconds, frame in found)
    np.testing.assert_allclose(films.onsets(heard(path), 16_000), [0.5, 1.5, 2.5, 3.5], atol=0.06)


def test_sound_that_begins_late(tmp_path: Path) -> None:
    sound = films.clicks(2.0, 44_100)
    path = films.film(tmp_path / "a.mkv", [i / 10 for i in range(40)], sound=sound, sound_start=1.25)
    np.testing.assert_allclose(films.onsets(heard(path), 16_000), [1.75, 2.75], atol=0.01)
    assert len(heard(path)) / 16_000 == pytest.approx(3.25, abs=0.06)


def test_a_picture_that_begins_late(tmp_path: Path) -> None:
    times, sound = [2.0 + i / 10 for i in range(20)], films.clicks(4.0, 44_100)
    path = films.film(tmp_path / "a.mkv", times, sound=sound, sound_codec="pcm_s16le")  # AAC would begin before 0
    found = seen(path, 1.0)
    assert [seconds for seconds, _ in found] == [2.0, 3.0]


def test_metadata_that_are_not_utf8(tmp_path: Path) -> None:
    path = films.film(tmp_path / "a.mkv", [i / 10 for i in range(10)], title="Cafe at noon")
    path.write_bytes(path.read_bytes().replace(b"Cafe", b"Caf\xe9"))
    assert probe(path).has_video


@pytest.mark.parametrize(("version", "takes"), [("14.0.0", True), ("18.1.0", True), ("19.0.2", False)])
def test_every_release_of_av_opens_files(
    plain: Path, monkeypatch: pytest.MonkeyPatch, version: str, takes: bool
) -> None:
    import av

    really = av.open

    def as_in_that_release(file: str, **options: object) -> object:
        assert ("metadata_errors" in options) == takes  # av 19 has no such parameter
        return really(file, options=options["options"])

    monkeypatch.setattr(av, "__version__", version)
    monkeypatch.setattr(av, "open", as_in_that_release)
    assert probe(plain).has_video


def test_sound_that_is_interrupted(tmp_path: Path) -> None:
    import av

    path = tmp_path / "a.mkv"
    sound, rate = films.clicks(4.0, 48_000), 48_000
    with av.open(str(path), "w") as container:
        track = container.add_stream("pcm_s16le", rate=rate)
        track.layout = "mono"
        for start in range(0, len(sound), 480):
            if rate <= start < 3 * rate:
                continue
            values = (sound[start : start + 480][None] * 32767).astype(np.int16)
            frame = av.AudioFrame.from_ndarray(values, format="s16", layout="mono")
            frame.sample_rate, frame.pts = rate, start
            container.mux(track.encode(frame))
    np.testing.assert_allclose(films.onsets(heard(path), 16_000), [0.5, 3.5], atol=0.01)


@pytest.mark.parametrize(
    ("matrix", "turned"),
    # a, b, c, d of the file format: x' = a x + c y, y' = b x + d y, with y pointing down
    [((0, 1, -1, 0), -1), ((-1, 0, 0, -1), 2), ((0, -1, 1, 0), 1), ((1, 0, 0, 1), 0)],
    ids=["clockwise", "upside down", "counterclockwise", "upright"],
)
def test_rotation_is_applied(tmp_path: Path, matrix: tuple[int, int, int, int], turned: int) -> None:
    image = np.zeros((32, 48, 3), dtype=np.uint8)
    image[:16, :24] = 250  # the upper left corner is white
    path = films.film(tmp_path / "a.mp4", [0.0, 0.1, 0.2], images=[image] * 3)
    data = path.read_bytes()
    unit = struct.pack(">9i", 65536, 0, 0, 0, 65536, 0, 0, 0, 1 << 30)
    a, b, c, d = (65536 * value for value in matrix)
    at = data.index(unit, data.index(b"tkhd"))
    path.write_bytes(data[:at] + struct.pack(">9i", a, b, 0, c, d, 0, 0, 0, 1 << 30) + data[at + 36 :])

    expected = np.rot90(image, turned)
    info = probe(path)
    assert (info.height, info.width) == expected.shape[:2] and info.rotation == turned % 4 * 90
    (_, found), *_ = frames(path, rate=1.0)
    assert found.shape == expected.shape
    assert np.abs(found.astype(int) - expected).mean() < 12


def test_the_shorter_side_is_brought_to_size(plain: Path) -> None:
    for size, shape in ((16, (16, 24, 3)), (64, (64, 96, 3))):
        (_, image), *_ = frames(plain, rate=1.0, size=size)
        assert image.shape == shape and image.dtype == np.uint8 and image.flags.c_contiguous


def test_sound_alone_and_picture_alone(tmp_path: Path) -> None:
    sound = films.film(tmp_path / "a.m4a", sound=films.clicks(2.0, 44_100))
    info = probe(sound)
    assert info.has_audio and not info.has_video and (info.width, info.frame_rate) == (0, 0.0)
    with pytest.raises(InputError, match=r"a\.m4a has no moving picture"):
        next(frames(sound, rate=1.0))
    mute = films.film(tmp_path / "a.mp4", [0.0, 0.5])
    info = probe(mute)
    assert info.has_video and not info.has_audio
    with pytest.raises(InputError, match=r"a\.mp4 has no sound"):
        next(audio(mute))


def test_one_frame(tmp_path: Path) -> None:
    path = films.film(tmp_path / "a.mp4", [0.0])
    assert probe(path).duration > 0
    assert len(seen(path, 1.0)) == 1


@pytest.mark.parametrize("suffix", [".mkv", ".mp4"])
def test_a_file_that_breaks_off_is_used_as_far_as_it_goes(tmp_path: Path, suffix: str) -> None:
    random = np.random.default_rng(0)
    images = [random.integers(0, 255, (32, 48, 3), dtype=np.uint8) for _ in range(200)]
    options = {"movflags": "faststart"} if suffix == ".mp4" else {}
    path = tmp_path / f"a{suffix}"
    films.film(path, [i / 10 for i in range(200)], images=images, sound=films.clicks(20.0, 44_100), options=options)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    info = probe(path)
    assert info.broken and 2 < info.duration < 19
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert len(list(frames(path, rate=1.0))) >= 2


def test_damage_in_the_middle_is_named(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    images = [random.integers(0, 255, (32, 48, 3), dtype=np.uint8) for _ in range(100)]
    path = films.film(tmp_path / "a.mp4", [i / 10 for i in range(100)], images=images)
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 20_000] = bytes(random.integers(0, 255, 20_000, dtype=np.uint8))
    path.write_bytes(data)
    with pytest.warns(UserWarning, match=r"the picture of .*a\.mp4 is used as far as it goes: it .* after") as caught:
        found = list(frames(path, rate=10.0))
    assert len(found) > 40 and len(caught) == 1


@pytest.mark.parametrize("seed", range(12))
def test_any_damage_is_survived_or_refused(tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    path = tmp_path / ("a.mp4" if seed % 2 else "a.mkv")
    films.film(path, [i / 10 for i in range(20)], sound=films.clicks(2.0, 22_050), rate=22_050)
    data = bytearray(path.read_bytes())
    for at in random.integers(0, len(data), 25):
        data[at] = random.integers(0, 256)
    path.write_bytes(data[: random.integers(len(data) // 2, len(data) + 1)])
    for read in (probe, lambda p: list(audio(p)), lambda p: list(frames(p, rate=2.0))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                read(path)
            except Graph2VidError as error:
                assert "\n" not in str(error)


def test_what_is_not_a_video(tmp_path: Path, plain: Path) -> None:
    from matplotlib import image as pictures

    pictures.imsave(tmp_path / "picture.png", np.zeros((8, 8, 3)))
    whole = plain.read_bytes()
    files = {
        "empty.mp4": b"",
        "text.txt": b"Cut the tomato.\nMix.\n" * 200,
        "text.mp4": b"Cut the tomato.\nMix.\n" * 200,
        "captions.srt": b"1\n00:00:01,000 --> 00:00:02,000\nx\n",
        "noise.mp4": np.random.default_rng(1).bytes(100_000),
        "zeros.mkv": bytes(100_000),
        "headless.mp4": whole[: len(whole) // 3],
        "list.m3u8": f"#EXTM3U\n#EXTINF:4,\nfile://{plain}\n#EXT-X-ENDLIST\n".encode(),
        "list.ffconcat": b"ffconcat version 1.0\nfile plain.mp4\n",
        "picture.png": (tmp_path / "picture.png").read_bytes(),
    }
    shutil.copy(plain, tmp_path / "plain.mp4")
    for name, data in files.items():
        path = tmp_path / name
        path.write_bytes(data)
        for read in (probe, lambda p: next(audio(p)), lambda p: next(frames(p, rate=1.0))):
            with pytest.raises(FormatError) as caught:
                read(path)
            assert str(path) in str(caught.value) and "\n" not in str(caught.value), name


def test_a_film_of_no_length(tmp_path: Path) -> None:
    import wave

    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8_000)
    with pytest.raises(FormatError, match=r"a\.wav holds neither sound nor moving picture: 0 s"):
        probe(tmp_path / "a.wav")


def test_folders_and_missing_files(tmp_path: Path) -> None:
    for path, message in ((tmp_path, "cannot read .*directory"), (tmp_path / "a.mp4", "cannot read .*No such file")):
        for read in (probe, lambda p: next(audio(p)), lambda p: next(frames(p, rate=1.0))):
            with pytest.raises(Graph2VidError, match=message):
                read(path)


def test_impossible_rates(plain: Path) -> None:
    for rate in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="frames per second"):
            next(frames(plain, rate=rate))
    with pytest.raises(InputError, match="samples per second"):
        next(audio(plain, 0))
    with pytest.raises(InputError, match="pixels"):
        next(frames(plain, rate=1.0, size=0))
