"""Archives of decks: accepted and rejected contents."""

import zipfile

import pytest

from cobre.bridge import archive
from cobre.bridge.archive import unpack_decks, unpacked_deck
from cobre.bridge.environment import DeckNotConvertedError


def write_archive(path, **files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in files.items():
            opened.writestr(name, content)
    return path


def test_folder_is_the_deck_itself(tmp_path):
    (tmp_path / "caso.dat").write_text("rv0")
    with unpacked_deck(tmp_path) as folder:
        assert folder == tmp_path


def test_deck_in_subfolder_is_found(tmp_path):
    (tmp_path / "DC202512").mkdir()
    (tmp_path / "DC202512" / "caso.dat").write_text("rv0")
    (tmp_path / "Sumario.pdf").write_bytes(b"")
    with unpacked_deck(tmp_path) as folder:
        assert folder == tmp_path / "DC202512"


def test_folder_is_copied_with_lower_case_names(tmp_path):
    (tmp_path / "Caso.dat").write_text("rv0")
    (tmp_path / "Dadger.RV0").write_text("TE")
    with unpacked_deck(tmp_path) as folder:
        assert sorted(path.name for path in folder.iterdir()) == ["caso.dat", "dadger.rv0"]
        assert (folder / "dadger.rv0").read_text() == "TE"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["Caso.dat", "Dadger.RV0"]


def test_folder_of_two_decks_is_rejected(tmp_path):
    for week in ("w1", "w2"):
        (tmp_path / week).mkdir()
        (tmp_path / week / "caso.dat").write_text("rv0")
    with pytest.raises(DeckNotConvertedError, match=r"holds 2 decks \(w1, w2\): name one"), unpacked_deck(tmp_path):
        pass


@pytest.mark.parametrize("content", [b"", b" \r\n"])
def test_index_without_file_names_is_rejected(tmp_path, content):
    (tmp_path / "caso.dat").write_bytes(content)
    with pytest.raises(DeckNotConvertedError, match=r"caso\.dat is empty: it names the list"), unpacked_deck(tmp_path):
        pass


def test_folder_without_a_deck_is_rejected(tmp_path):
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(DeckNotConvertedError, match=r"the folder holds no caso\.dat"), unpacked_deck(tmp_path):
        pass


def test_archive_is_unpacked_and_removed_again(tmp_path):
    deck = write_archive(tmp_path / "deck.zip", **{"CASO.DAT": "arquivos.dat", "HIDR.DAT": b"\x00\x01"})
    with unpacked_deck(deck) as folder:
        assert {path.name.lower() for path in folder.iterdir()} == {"caso.dat", "hidr.dat"}
        assert (folder / "hidr.dat").read_bytes() == b"\x00\x01"
    assert not folder.exists()


def test_deck_in_folder_of_archive_is_found(tmp_path):
    deck = write_archive(
        tmp_path / "deck.zip", **{"DC202512/caso.dat": "rv0", "DC202512/dadger.rv0": "", "readme.pdf": ""}
    )
    with unpacked_deck(deck) as folder:
        assert folder.name == "DC202512"


def test_nested_archive_is_unpacked(tmp_path):
    inner = write_archive(tmp_path / "inner.zip", **{"caso.dat": "rv0"})
    outer = write_archive(tmp_path / "outer.zip", **{"week.zip": inner.read_bytes()})
    with unpacked_deck(outer) as folder:
        assert (folder / "caso.dat").read_text() == "rv0"


def test_results_and_archives_next_to_deck_are_not_unpacked(tmp_path):
    results = write_archive(tmp_path / "results.zip", **{"caso.dat": "of another deck"})
    entries = {"NW/caso.dat": "arquivos.dat", "NW/saidas/caso.dat": "a copy", "NW/saidas.zip": results.read_bytes()}
    with unpacked_deck(write_archive(tmp_path / "deck.zip", **entries)) as folder:
        assert folder.name == "NW"
        assert (folder / "caso.dat").read_text() == "arquivos.dat"
        assert not (folder / "saidas_").exists()


def test_nested_archive_may_share_the_name_of_a_file(tmp_path):
    inner = write_archive(tmp_path / "inner.zip", **{"caso.dat": "rv0"})
    outer = write_archive(tmp_path / "outer.zip", **{"week": "a file", "week.ZIP": inner.read_bytes()})
    with unpacked_deck(outer) as folder:
        assert (folder / "caso.dat").read_text() == "rv0"


def test_non_ascii_names_and_backslashes_are_accepted(tmp_path):
    names = {"Prevís\xe3o\\Caso.dat": "rv0", "Prevís\xe3o\\dadger.rv0": "", "Sum\xe1rio da revis\xe3o.pdf": ""}
    with unpacked_deck(write_archive(tmp_path / "deck.zip", **names)) as folder:
        assert sorted(path.name for path in folder.iterdir()) == ["caso.dat", "dadger.rv0"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_later_duplicate_entry_wins(tmp_path):
    deck = write_archive(tmp_path / "deck.zip", **{"caso.dat": "rv0"})
    with zipfile.ZipFile(deck, "a") as opened:
        opened.writestr("caso.dat", "rv1")
    with unpacked_deck(deck) as folder:
        assert (folder / "caso.dat").read_text() == "rv1"


def test_decomp_names_are_in_lower_case(tmp_path):
    deck = write_archive(tmp_path / "deck.zip", **{"caso.dat": "rv0", "Dadger.rv0": "", "VAZOES.rv0": ""})
    with unpacked_deck(deck) as folder:
        assert sorted(path.name for path in folder.iterdir()) == ["caso.dat", "dadger.rv0", "vazoes.rv0"]


def test_archive_of_two_decks_is_rejected_with_their_names(tmp_path):
    deck = write_archive(tmp_path / "month.zip", **{"w1/caso.dat": "rv0", "w2/caso.dat": "rv1"})
    with pytest.raises(DeckNotConvertedError, match=r"holds 2 decks \(w1, w2\): unpack it"), unpacked_deck(deck):
        pass
    assert [folder.name for folder in unpack_decks(deck, tmp_path / "both")] == ["w1", "w2"]


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("../caso.dat", "outside of the archive"),
        ("/etc/caso.dat", "outside of the archive"),
        ("a/..\\..\\caso.dat", "outside of the archive"),
        ("other.dat", "holds no caso.dat"),
    ],
)
def test_unsafe_entry_is_rejected(tmp_path, name, complaint):
    deck = write_archive(tmp_path / "deck.zip", **{name: "rv0"})
    with pytest.raises(DeckNotConvertedError, match=complaint), unpacked_deck(deck):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["deck.zip"]


def test_invalid_zip_is_rejected(tmp_path):
    (tmp_path / "deck.zip").write_bytes(b"PK\x03\x04 and nothing more")
    with (
        pytest.raises(DeckNotConvertedError, match="neither a folder nor a zip archive"),
        unpacked_deck(tmp_path / "deck.zip"),
    ):
        pass


def test_damaged_archive_is_rejected(tmp_path):
    deck = write_archive(tmp_path / "deck.zip", **{"caso.dat": "rv0" * 1000})
    content = bytearray(deck.read_bytes())
    content[60:70] = b"0123456789"
    deck.write_bytes(content)
    with pytest.raises(DeckNotConvertedError, match="cannot be unpacked"), unpacked_deck(deck):
        pass


def test_too_large_archive_is_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "MAX_UNPACKED_BYTES", 100)
    deck = write_archive(tmp_path / "deck.zip", **{"caso.dat": " " * 101})
    with pytest.raises(DeckNotConvertedError, match="this is not a deck"), unpacked_deck(deck):
        pass
