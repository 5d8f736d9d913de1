"""Files are taken once, settled once, and never read in part; crash points are walked through one by one."""

import os
from pathlib import Path

import pytest

from palio.folders import FileChanging, FolderInUse, FolderUnusable, InFolder, UnusableFile
from palio.folders import taking as taking_module
from palio.model.values import MAX_PAYLOAD_BYTES


@pytest.fixture
def place(tmp_path):
    return tmp_path / "in"


@pytest.fixture
def folder(place):
    place.mkdir()
    opened = InFolder(place)
    yield opened
    opened.close()


def taken(folder):
    """What is there, and stays as it is."""
    first = folder.take()
    return first + folder.take()


def names(place):
    return sorted(one.name for one in place.iterdir() if one.is_file() or one.is_symlink())


def test_a_file_is_taken_once_it_stayed_the_same(place, folder):
    (place / "a.xml").write_text("half")
    assert folder.take() == []
    (place / "a.xml").write_text("half and half")
    assert folder.take() == []
    (one,) = folder.take()
    assert (one.name, folder.read(one), names(place)) == ("a.xml", b"half and half", [])
    folder.finish(one)
    assert (place / "done" / "a.xml").read_text() == "half and half"
    assert folder.take() == []
    assert folder.waiting == 0


def test_files_are_taken_in_the_order_of_their_last_change(place, folder):
    for number, name in enumerate(("c", "a", "b")):
        (place / name).write_text(name)
        os.utime(place / name, ns=(number, number))
    assert [one.name for one in taken(folder)] == ["c", "a", "b"]


def test_folders_and_hidden_files_are_left_alone(place, folder):
    (place / ".a.xml").write_text("x")
    (place / "sub").mkdir()
    (place / "sub" / "b.xml").write_text("x")
    assert taken(folder) == []
    assert (place / ".a.xml").exists()
    assert (place / "sub" / "b.xml").exists()


def test_what_is_rejected_has_its_reason_beside_it(place, folder):
    for content in ("1", "2"):
        (place / "a.xml").write_text(content)
        (one,) = taken(folder)
        folder.reject(one, "It is wrong.")
    rejected = sorted((place / "rejected").iterdir())
    assert len(rejected) == 4
    assert [one.read_text() for one in rejected if one.name.endswith(".reason.txt")] == ["It is wrong.\n"] * 2
    assert sorted(one.read_text() for one in rejected if one.name.endswith(".xml")) == ["1", "2"]
    assert all((one.parent / f"{one.name}.reason.txt").exists() for one in rejected if one.suffix == ".xml")


def test_two_files_of_one_name_are_both_kept(place, folder):
    for content in ("1", "2"):
        (place / "a.xml").write_text(content)
        (one,) = taken(folder)
        folder.finish(one)
    assert sorted(one.read_text() for one in (place / "done").iterdir()) == ["1", "2"]


def test_names_may_be_as_long_as_names_may_be_and_of_any_bytes(place, folder):
    wanted = ["x" * 251 + ".xml", os.fsdecode(b"\xff\xfe.xml"), "a\nb.xml"]
    for _ in range(2):
        for name in wanted:
            (place / name).write_text("x")
        for one in taken(folder):
            assert one.shown.encode()
            folder.reject(one, "No.")
    assert len(list((place / "rejected").iterdir())) == 12


def test_what_was_published_can_be_deleted(tmp_path):
    (tmp_path / "a.xml").write_text("x")
    folder = InFolder(tmp_path, delete=True)
    (one,) = taken(folder)
    folder.finish(one)
    assert names(tmp_path) == names(tmp_path / "done") == []
    folder.close()


def test_links_out_of_the_folder_are_not_followed(tmp_path, place, folder):
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    (place / "soft.xml").symlink_to(secret)
    (place / "hard.xml").hardlink_to(secret)
    os.mkfifo(place / "pipe.xml")
    found = {one.name: one for one in taken(folder)}
    for name, said in ("soft.xml", "a link"), ("hard.xml", "another name"), ("pipe.xml", "a link, or no file"):
        with pytest.raises(UnusableFile, match=said):
            folder.read(found[name])
        folder.reject(found[name], "No.")
    assert (place / "rejected" / "soft.xml").is_symlink()
    assert secret.read_text() == "s3cret"


def test_a_file_that_is_too_large_is_not_even_read(place, folder):
    with (place / "a.xml").open("wb") as opened:
        opened.truncate(MAX_PAYLOAD_BYTES + 1)
    (one,) = taken(folder)
    with pytest.raises(UnusableFile, match="are the most"):
        folder.read(one)


def test_a_file_that_changes_while_it_is_read_is_read_again(place, folder, monkeypatch):
    (place / "a.xml").write_text("half")
    (one,) = taken(folder)
    real = os.open

    def opened(path, *arguments):
        if Path(path) == one.path:
            one.path.write_text("half and half")
        return real(path, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(taking_module.os, "open", opened)
        with pytest.raises(FileChanging):
            folder.read(one)
    folder.again(one)
    assert folder.take() == [one]
    assert folder.read(one) == b"half and half"


def test_a_folder_has_one_watcher(place, folder):
    with pytest.raises(FolderInUse, match="one watcher"):
        InFolder(place)
    folder.close()
    InFolder(place).close()
    folder._lock = InFolder(place)._lock  # for the fixture, which closes it again


def test_a_folder_that_is_none_or_holds_strange_rooms_is_refused(tmp_path):
    with pytest.raises(FolderUnusable, match="no folder"):
        InFolder(tmp_path / "none")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "done").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FolderUnusable, match="same file system"):
        InFolder(tmp_path / "in")


class Crash(BaseException):
    pass


def steps(monkeypatch, crash_at):
    """Have the process end before that change of the file system; without, count them."""
    count = [0]
    for owner, name in (
        *((Path, name) for name in ("rename", "rmdir", "mkdir", "write_text", "write_bytes", "unlink")),
        (os, "fsync"),
    ):
        real = getattr(owner, name)

        def step(*arguments, real=real, **named):
            if count[0] == crash_at:
                raise Crash
            count[0] += 1
            return real(*arguments, **named)

        monkeypatch.setattr(owner, name, step)
    return count


def settle_all(place, published):
    """A watcher from its beginning to its end. `published` is what a broker remembers, by id."""
    folder = InFolder(place)
    try:
        while files := taken(folder):
            for one in files:
                content = folder.read(one)
                assert published.setdefault((folder.publisher, one.token), content) == content
                if content == b"bad":
                    folder.reject(one, "It is bad.")
                else:
                    folder.finish(one)
    finally:
        folder.close()


def test_wherever_it_crashes_each_file_is_published_once_and_ends_at_its_place(tmp_path):
    at = 0
    while True:
        place = tmp_path / str(at)
        place.mkdir()
        (place / "good.xml").write_bytes(b"good")
        (place / "bad.xml").write_bytes(b"bad")
        published = {}
        with pytest.MonkeyPatch.context() as patched:
            steps(patched, at)
            try:
                settle_all(place, published)
                crashed = False
            except Crash:
                crashed = True
        settle_all(place, published)
        assert sorted(published.values()) == [b"bad", b"good"], at
        assert names(place / "done") == ["good.xml"], at
        assert names(place / "rejected") == ["bad.xml", "bad.xml.reason.txt"], at
        assert list((place / ".palio" / "taken").iterdir()) == [], at
        if not crashed:
            break
        at += 1
    assert at > 15
