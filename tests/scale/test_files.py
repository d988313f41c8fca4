from pathlib import Path

import pytest

from profsvc.errors import NotFoundError, UsageError
from profsvc.scale import FileGroup, group_files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b/ncu.csv", "b/power.csv", "a/ncu.csv.gz", "a/ncu.txt", "a/deep/x.csv", ".hidden/y.csv", "z.csv"):
        file = tmp_path / "exports" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return tmp_path / "exports"


def named(groups: list[FileGroup], folder: Path) -> dict[str, list[str]]:
    return {group.run: [str(Path(file).relative_to(folder)) for file in group.files] for group in groups}


def test_each_file_is_a_run_and_what_differs_in_its_suffixes_is_the_same(folder: Path) -> None:
    assert named(group_files([str(folder)]), folder) == {
        "a/deep/x": ["a/deep/x.csv"],
        "a/ncu": ["a/ncu.csv.gz", "a/ncu.txt"],
        "b/ncu": ["b/ncu.csv"],
        "b/power": ["b/power.csv"],
        "z": ["z.csv"],
    }


def test_each_folder_is_a_run(folder: Path) -> None:
    assert named(group_files([str(folder)], "folder"), folder) == {
        "a/deep": ["a/deep/x.csv"],
        "a": ["a/ncu.csv.gz", "a/ncu.txt"],
        "b": ["b/ncu.csv", "b/power.csv"],
        "exports": ["z.csv"],
    }


def test_a_file_that_is_given_twice_is_taken_once(folder: Path) -> None:
    file = folder / "b" / "ncu.csv"
    assert named(group_files([str(file), str(file)]), folder) == {"ncu": ["b/ncu.csv"]}
    assert named(group_files([str(file)], "folder"), folder) == {"b": ["b/ncu.csv"]}


def test_what_is_not_there_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no file 'nowhere'"):
        group_files(["nowhere"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotFoundError, match="no files in"):
        group_files([str(tmp_path / "empty")])
    with pytest.raises(UsageError, match="not by 'night'"):
        group_files([str(folder)], "night")
