"""Write what is generated of the documentation: ``python -m tests.docs [NAME ...]``, such as ``commands``.

That is the reference, the pictures, the cookbook, and what the commands of the other pages print.
"""

import sys
import tempfile
from pathlib import Path

from profsvc import docs, store
from tests.conftest import DEMO
from tests.docs import pictures, reference
from tests.docs.console import README, Shell, blocks, prepare, run_page, with_example
from tests.docs.cookbook import cookbook
from tests.store.queries import questions


def written(name: str, text: str) -> None:
    path = docs.FOLDER / name
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
        print(f"written: {path.relative_to(docs.FOLDER)}")  # noqa: T201


def write_readme(folder: Path) -> None:
    (folder / "readme").mkdir()
    text = README.read_text(encoding="utf-8")
    shell = Shell(folder / "readme")
    shell.run(f"profsvc upload {DEMO} --run today")
    README.write_text(with_example(text, shell), encoding="utf-8")


def main(wanted: list[str]) -> None:
    def is_wanted(name: str) -> bool:
        return not wanted or name in wanted

    for name in reference.PAGES:
        if is_wanted(name):
            written(f"reference/{name}.md", reference.page(name))
    for name, drawn in pictures.pictures().items():
        if is_wanted(name):
            written(f"pictures/{name}", drawn)
    with tempfile.TemporaryDirectory() as folder:
        for number, topic in enumerate(docs.topics().values()):
            own = Path(folder, str(number))
            if is_wanted(topic.path.stem) and any(block.info == "console" for block in blocks(topic.text)):
                own.mkdir()
                if topic.kind != "tutorials":
                    prepare(own, topic.text)
                written(f"{topic.name}.md", run_page(topic.text, Shell(own))[0])
        if is_wanted("README"):
            write_readme(Path(folder))
        if is_wanted("cookbook"):
            engine = store.open_store(f"{folder}/store.sqlite")
            questions.fill(engine)
            written("howto/cookbook.md", cookbook(engine))
            engine.dispose()


if __name__ == "__main__":
    main(sys.argv[1:])
