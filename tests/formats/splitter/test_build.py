"""The modules are compiled where there is a compiler; without one the installation goes on."""

import shlex
import sysconfig
from pathlib import Path

import pytest

from profsvc.formats.splitter import build


def test_without_a_compiler_it_is_left_out(monkeypatch, tmp_path):
    monkeypatch.setenv("CC", "no-such-compiler")
    assert build.compile_module(build.SOURCE, tmp_path / "module.so") == "no C compiler was found"
    monkeypatch.setenv(build.LEFT_OUT_VARIABLE, "1")
    assert build.compile_module(build.SOURCE, tmp_path / "module.so") == "PROFSVC_WITHOUT_COMPILER is set"
    assert not list(tmp_path.iterdir())


def test_a_compiler_that_fails_is_told(monkeypatch, tmp_path):
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho 'Python.h: no such file' >&2\nexit 1\n", encoding="ascii")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    assert build.compile_module(build.SOURCE, tmp_path / "module.so") == f"{compiler} failed: Python.h: no such file"


@pytest.mark.parametrize("source", build.SOURCES, ids=lambda source: source.stem)
def test_the_source_has_no_warnings(source, tmp_path):
    strict = ["-Werror", "-Wconversion", "-Wshadow"]
    if reason := build.compile_module(source, tmp_path / "module.so", strict):
        if "Python.h" in reason or "compiler was found" in reason or "is set" in reason:
            pytest.skip(reason)
        pytest.fail(reason)
    assert [path.name for path in tmp_path.iterdir()] == ["module.so"]


@pytest.mark.parametrize("path", build.SOURCES, ids=lambda path: path.stem)
def test_the_source_is_short_and_uses_the_stable_interface(path):
    source = path.read_text(encoding="ascii")
    assert len(source.splitlines()) <= 800
    assert "#define Py_LIMITED_API 0x030B0000" in source
    assert max(map(len, source.splitlines())) <= 120


@pytest.mark.parametrize("compiles", [True, False])
def test_the_wheel_names_its_platform_if_it_has_the_module(compiles, monkeypatch, tmp_path):
    from profsvc.formats.splitter.build_hook import CompilingHook

    if not compiles:
        monkeypatch.setenv("CC", "no-such-compiler")
    elif reason := build.compile_module(build.SOURCE, tmp_path / "module.so"):
        pytest.skip(reason)
    said: list[str] = []
    folder = tmp_path / "profsvc"
    folder.mkdir()
    found = vars(build) | {"target_of": lambda source: folder / build.target_of(source).name}
    monkeypatch.setattr("runpy.run_path", lambda _: found)

    class App:
        display_warning = staticmethod(said.append)

    hook = CompilingHook(str(tmp_path), {}, None, None, str(tmp_path), "wheel", App())  # type: ignore[arg-type]
    data: dict[str, object] = {"artifacts": []}
    hook.initialize("standard", data)
    if not compiles:
        assert (data, len(said), list(folder.iterdir())) == ({"artifacts": []}, 3, [])
        return
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert data == {
        "artifacts": [f"profsvc/_{name}.abi3.so" for name in ("splitter", "pages", "copies")],
        "pure_python": False,
        "tag": f"cp311-abi3-{platform}",
    }
    assert sorted(path.name for path in folder.iterdir()) == [
        f"_{name}.abi3.so" for name in ("copies", "pages", "splitter")
    ]


def test_the_command_uses_the_compiler_of_the_environment(monkeypatch):
    monkeypatch.setenv("CC", f"{shlex.quote('/bin/sh')} -x")
    parts = build.command(build.SOURCE, Path("module.so"))
    assert parts is not None
    assert parts[:2] == ["/bin/sh", "-x"]
