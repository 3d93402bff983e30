# SPDX-License-Identifier: Apache-2.0
"""What MkDocs does beside docs/: pages that stand elsewhere in the source tree, and links as code hosts read them.

README.md, CONTRIBUTING.md and CHANGELOG.md become pages at the root of the site, and each examples/<lesson>.cpp a page
lessons/<lesson>.md. Links between pages are written for the source tree and are turned to where the pages are here.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]  # of the root of the source tree
LINK = re.compile(r"\]\(([^)#:\s]*)(#[^)\s]*)?\)")
FENCE = re.compile(r"^ *```")


def anchor(text, separator):
    """A heading's anchor as code hosts make it, so that one link serves both; see test/links.cmake."""
    return re.sub(r"[^a-z0-9_ -]", "", text.strip().lower()).replace(" ", separator)


def lessons():
    return sorted(path.stem for path in (ROOT / "examples").glob("[0-9]*.cpp"))


def on_config(config):
    config["mdx_configs"].setdefault("toc", {})["slugify"] = anchor
    config["nav"].insert(2, {"Lessons": [f"lessons/{lesson}.md" for lesson in lessons()]})
    return config


def on_files(files, config):
    for file in list(files):
        if file.src_uri.startswith("site/") and not file.src_uri.endswith(".css") or file.src_uri.endswith(".sh"):
            files.remove(file)

    def add(name, folder):
        files.append(File(name, folder, config["site_dir"], config["use_directory_urls"]))

    for name in PAGES:
        add(name, str(ROOT))
    for lesson in lessons():
        add(f"lessons/{lesson}.md", str(ROOT))
    return files


def on_page_read_source(page, config):
    name = page.file.src_uri
    if not name.startswith("lessons/"):
        return None
    lesson = Path(name).stem
    text = (ROOT / "examples" / f"{lesson}.cpp").read_text(encoding="utf-8")
    text = re.sub(r"^ *// \[snippet-(begin|end) .*\n", "", text, flags=re.MULTILINE)
    number, title = lesson.split("_", 1)
    output = ROOT / "examples" / f"{lesson}.out"
    printed = f"\nPrints, where `<...>` stands for anything:\n\n```\n{output.read_text()}```\n" if output.exists() else ""
    return f"# {int(number)}: {title.replace('_', ' ')}\n\n`examples/{lesson}.cpp`\n\n```cpp\n{text}```\n{printed}"


def source_path(name):
    """Where a page stands in the source tree."""
    return name if name in PAGES else f"docs/{name}"


def site_path(source):
    """Where what stands in the source tree is on the site; None for what has no page."""
    if source in PAGES:
        return source
    if source.startswith("docs/"):
        return source[len("docs/"):]
    match = re.fullmatch(r"examples/([0-9].*)\.cpp", source)
    return f"lessons/{match.group(1)}.md" if match else None


def turned(match, name):
    target, place = match.group(1), match.group(2) or ""
    if not target:
        return match.group(0)
    source = posixpath.normpath(posixpath.join(posixpath.dirname(source_path(name)), target))
    page = site_path(source)
    if page is None:  # a file without a page: its name is all that the site can give
        return f"] (`{source}`)"
    return f"]({posixpath.relpath(page, posixpath.dirname(name) or '.')}{place})"


def on_page_markdown(markdown, page, config, files):
    name = page.file.src_uri
    if name.startswith("lessons/"):
        return markdown
    lines, fenced, before = [], False, ""
    for line in markdown.split("\n"):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            # Code hosts begin lists and tables without a blank line, python-markdown does not.
            if re.match(r"(- |[0-9]+\. |\|)", line) and before and not re.match(r"( |- |[0-9]+\. |\|)", before):
                lines.append("")
            line = "`".join(part if i % 2 else LINK.sub(lambda match: turned(match, name), part)
                            for i, part in enumerate(line.split("`")))
        lines.append(line)
        before = line
    if name == "api.md":
        lines.append("\nOn this site: <a href=\"api/index.html\">the reference</a>, made by Doxygen, with "
                     "<a href=\"api/files.html\">headers by folder</a> and <a href=\"api/annotated.html\">types</a>.")
    return "\n".join(lines)
