"""Archives of decks: accepted and refused contents."""

import zipfile

import pytest

from cobre.bridge import archive
from cobre.bridge.archive import unpack_decks, unpacked_deck
from cobre.bridge.environment import DeckNotConvertedError


def zipped(path, **files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in files.items():
            opened.writestr(name, content)
    return path


def test_folder_is_the_deck_itself(tmp_path):
    (tmp_path / "caso.dat").write_text("rv0")
    with unpacked_deck(tmp_path) as folder:
        assert folder == tmp_path


def test_folder_around_the_deck(tmp_path):
    (tmp_path / "DC202512").mkdir()
    (tmp_path / "DC202512" / "caso.dat").write_text("rv0")
    (tmp_path / "Sumario.pdf").write_bytes(b"")
    with unpacked_deck(tmp_path) as folder:
        assert folder == tmp_path / "DC202512"


def test_names_of_a_folder_are_given_in_lower_case_and_the_folder_stays(tmp_path):
    (tmp_path / "Caso.dat").write_text("rv0")
    (tmp_path / "Dadger.RV0").write_text("TE")
    with unpacked_deck(tmp_path) as folder:
        assert sorted(path.name for path in folder.iterdir()) == ["caso.dat", "dadger.rv0"]
        assert (folder / "dadger.rv0").read_text() == "TE"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["Caso.dat", "Dadger.RV0"]


def test_folder_of_two_decks_is_refused(tmp_path):
    for week in ("w1", "w2"):
        (tmp_path / week).mkdir()
        (tmp_path / week / "caso.dat").write_text("rv0")
    with pytest.raises(DeckNotConvertedError, match=r"holds 2 decks \(w1, w2\): name one"), unpacked_deck(tmp_path):
        pass


@pytest.mark.parametrize("content", [b"", b" \r\n"])
def test_index_that_names_nothing(tmp_path, content):
    (tmp_path / "caso.dat").write_bytes(content)
    with pytest.raises(DeckNotConvertedError, match=r"caso\.dat is empty: it names the list"), unpacked_deck(tmp_path):
        pass


def test_folder_without_a_deck(tmp_path):
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(DeckNotConvertedError, match=r"the folder holds no caso\.dat"), unpacked_deck(tmp_path):
        pass


def test_archive_is_unpacked_and_removed_again(tmp_path):
    deck = zipped(tmp_path / "deck.zip", **{"CASO.DAT": "arquivos.dat", "HIDR.DAT": b"\x00\x01"})
    with unpacked_deck(deck) as folder:
        assert {path.name.lower() for path in folder.iterdir()} == {"caso.dat", "hidr.dat"}
        assert (folder / "hidr.dat").read_bytes() == b"\x00\x01"
    assert not folder.exists()


def test_deck_in_a_folder_of_the_archive(tmp_path):
    deck = zipped(tmp_path / "deck.zip", **{"DC202512/caso.dat": "rv0", "DC202512/dadger.rv0": "", "readme.pdf": ""})
    with unpacked_deck(deck) as folder:
        assert folder.name == "DC202512"


def test_archive_inside_of_an_archive(tmp_path):
    inner = zipped(tmp_path / "inner.zip", **{"caso.dat": "rv0"})
    outer = zipped(tmp_path / "outer.zip", **{"week.zip": inner.read_bytes()})
    with unpacked_deck(outer) as folder:
        assert (folder / "caso.dat").read_text() == "rv0"


def test_results_and_archives_beside_a_deck_are_left_alone(tmp_path):
    results = zipped(tmp_path / "results.zip", **{"caso.dat": "of another deck"})
    entries = {"NW/caso.dat": "arquivos.dat", "NW/saidas/caso.dat": "a copy", "NW/saidas.zip": results.read_bytes()}
    with unpacked_deck(zipped(tmp_path / "deck.zip", **entries)) as folder:
        assert folder.name == "NW"
        assert (folder / "caso.dat").read_text() == "arquivos.dat"
        assert not (folder / "saidas_").exists()


def test_inner_archive_beside_a_file_of_its_name(tmp_path):
    inner = zipped(tmp_path / "inner.zip", **{"caso.dat": "rv0"})
    outer = zipped(tmp_path / "outer.zip", **{"week": "a file", "week.ZIP": inner.read_bytes()})
    with unpacked_deck(outer) as folder:
        assert (folder / "caso.dat").read_text() == "rv0"


def test_names_that_are_not_ascii_and_backslashes_of_windows(tmp_path):
    names = {"Prevís\xe3o\\Caso.dat": "rv0", "Prevís\xe3o\\dadger.rv0": "", "Sum\xe1rio da revis\xe3o.pdf": ""}
    with unpacked_deck(zipped(tmp_path / "deck.zip", **names)) as folder:
        assert sorted(path.name for path in folder.iterdir()) == ["caso.dat", "dadger.rv0"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_of_two_entries_of_one_name_the_later_one_counts(tmp_path):
    deck = zipped(tmp_path / "deck.zip", **{"caso.dat": "rv0"})
    with zipfile.ZipFile(deck, "a") as opened:
        opened.writestr("caso.dat", "rv1")
    with unpacked_deck(deck) as folder:
        assert (folder / "caso.dat").read_text() == "rv1"


def test_decomp_names_are_in_lower_case(tmp_path):
    deck = zipped(tmp_path / "deck.zip", **{"caso.dat": "rv0", "Dadger.rv0": "", "VAZOES.rv0": ""})
    with unpacked_deck(deck) as folder:
        assert sorted(path.name for path in folder.iterdir()) == ["caso.dat", "dadger.rv0", "vazoes.rv0"]


def test_two_decks_are_named_and_refused(tmp_path):
    deck = zipped(tmp_path / "month.zip", **{"w1/caso.dat": "rv0", "w2/caso.dat": "rv1"})
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
def test_bad_entries(tmp_path, name, complaint):
    deck = zipped(tmp_path / "deck.zip", **{name: "rv0"})
    with pytest.raises(DeckNotConvertedError, match=complaint), unpacked_deck(deck):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["deck.zip"]


def test_what_is_no_archive(tmp_path):
    (tmp_path / "deck.zip").write_bytes(b"PK\x03\x04 and nothing more")
    with (
        pytest.raises(DeckNotConvertedError, match="neither a folder nor a zip archive"),
        unpacked_deck(tmp_path / "deck.zip"),
    ):
        pass


def test_damaged_archive(tmp_path):
    deck = zipped(tmp_path / "deck.zip", **{"caso.dat": "rv0" * 1000})
    content = bytearray(deck.read_bytes())
    content[60:70] = b"0123456789"
    deck.write_bytes(content)
    with pytest.raises(DeckNotConvertedError, match="cannot be unpacked"), unpacked_deck(deck):
        pass


def test_archive_that_is_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "MAX_UNPACKED_BYTES", 100)
    deck = zipped(tmp_path / "deck.zip", **{"caso.dat": " " * 101})
    with pytest.raises(DeckNotConvertedError, match="this is no deck"), unpacked_deck(deck):
        pass
