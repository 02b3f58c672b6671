"""What lessons/practice/ may hold, and the sentence that answers each kind of mistake in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.errors import BadNotebook, BadSetting
from sandbox.learn import content
from sandbox.learn.content import Mistake, Option

HEAD = '[[item]]\nid = "03.q1"\nquestion = "What?"\nwhy = "So."\n'
CHOOSE = HEAD + "kind = 'choose'\ncode = '''\nprint(1)\n'''\noption = [{text = '1'}, {text = '2', says = 'No.'}]\n"
GAP = HEAD + "kind = 'gap'\ncode = 'print(____)'\nanswers = ['1']\nmistake = [{answers = ['2'], says = 'No.'}]\n"
PARSONS = HEAD + (
    "kind = 'parsons'\nlines = ['for a in [1]:', '    b = a', '    print(b)']\nafter = 'print()'\n"
    "distractor = [{text = 'pass', says = 'No.'}]\n"
)
TERM = "[[term]]\nname = 'soft limit'\ntext = 'A signal.'\nlesson = '03'\n"
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """A course folder with this text in one practice file."""
    (tmp_path / content.FOLDER).mkdir(parents=True)

    def into(text: str | bytes, name: str = "03_signal.toml") -> Path:
        data = text if isinstance(text, bytes) else text.encode()
        (tmp_path / content.FOLDER / name).write_bytes(data)
        return tmp_path

    return into


def refused(root: Path) -> str:
    """The sentence, without the file it begins with."""
    with pytest.raises(BadNotebook) as found:
        content.items("03", root)
    says = str(found.value)
    file = str(root.resolve() / content.FOLDER / "03_signal.toml")
    assert says.startswith(file) and says.endswith(".") and "\n" not in says
    return says.removeprefix(file).lstrip(": ")


def test_a_question_with_options(write: Write) -> None:
    """Code loses its outer blank lines and shared indentation; an option may say nothing."""
    [one] = content.items("03", write(CHOOSE.replace("print(1)", "  if 1:\n    print(1)")))
    assert (one.id, one.lesson, one.kind, one.code) == ("03.q1", "03", "choose", "if 1:\n  print(1)")
    assert one.options == (Option(text="1"), Option(text="2", says="No."))


def test_a_program_with_gaps(write: Write) -> None:
    """Its answers, and the mistakes that are expected."""
    [one] = content.items("03", write(GAP))
    assert one.answers == ("1",) and one.mistakes == (Mistake(answers=("2",), says="No."),)


def test_lines_to_order(write: Write) -> None:
    """Indentation stays, blanks at a line's end go, and what stands around the lines keeps its own indentation."""
    [one] = content.items("03", write(PARSONS.replace("b = a", "b = a  ").replace("'print()'", "'    print(b)'")))
    assert one.lines == ("for a in [1]:", "    b = a", "    print(b)")
    assert one.after == "    print(b)" and one.before == ""
    assert one.distractors == (Option(text="pass", says="No."),)


def test_a_lesson_without_practice_has_no_items(write: Write) -> None:
    """No file, and a file without items, are both empty."""
    root = write("")
    assert content.items("03", root) == content.items("07", root) == content.all_items(root) == ()


def test_two_files_of_a_lesson_are_one(write: Write) -> None:
    """Items come in the order of the files, and all_items has each once."""
    write(GAP)
    root = write(GAP.replace("03.q1", "03.q2"), "03_two.toml")
    assert [one.id for one in content.items("03", root)] == ["03.q1", "03.q2"]
    assert [one.id for one in content.all_items(root)] == ["03.q1", "03.q2"]


@pytest.mark.parametrize("name", ["03-signal.toml", "signal.toml", "3_signal.toml"])
def test_a_file_whose_name_nobody_reads_is_refused(write: Write, name: str) -> None:
    """A slip in the name would otherwise be a lesson without practice."""
    with pytest.raises(
        BadNotebook, match=r"nothing reads a file of this name; call it after its lesson, NN_slug\.toml"
    ):
        content.items("03", write("", name))


def test_the_mark_that_some_editors_put_in_front_is_passed_over(write: Write) -> None:
    """A file that begins with a byte order mark is read as any other."""
    assert content.items("03", write(b"\xef\xbb\xbf# nothing yet\n")) == ()


def test_an_id_in_two_files_is_refused(write: Write) -> None:
    """The second file is named."""
    write(GAP)
    root = write(GAP, "03_two.toml")
    with pytest.raises(BadNotebook, match=r"03_two.toml: the id '03.q1' stands twice in lesson 03; change one"):
        content.items("03", root)


@pytest.mark.parametrize("item_id", ["03.q2", "03", "", "q1", "../x", "*3.q1", "٠٣.q1", None, 3, ["03.q1"], b"03.q1"])
def test_an_unknown_item_is_refused(write: Write, item_id: object) -> None:
    """The error lists those there are."""
    root = write(GAP)
    assert content.item("03.q1", root).kind == "gap"
    with pytest.raises(BadSetting, match=r"there is no practice item .*; there are 03\.q1\."):
        content.item(item_id, root)  # type: ignore[arg-type]


def test_an_unknown_item_of_an_empty_course(write: Write) -> None:
    """Then there are none yet."""
    with pytest.raises(BadSetting, match="there are none yet"):
        content.item("03.q1", write(""))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[item", "is not valid TOML: "),
        (b"\xff\xfe", "is not valid TOML: it is not UTF-8; save it as UTF-8."),
        ("a = " + "[" * 9000, "is not valid TOML: "),
        ("[[itm]]\nid = '03.q1'", "the file has a field 'itm' that is not known; there are item."),
        ("[[option]]\ntext = '1'", "there are item; write [[item.option]], with text and says."),
        ("[item]\nid = '03.q1'", "write each item of the file as a table: [[item]]."),
        ("item = 3", "write each item of the file as a table: [[item]]."),
        ("[[item]]\nkind = 'gap'", "item no. 1 needs 'id', a text in quotes that is not empty: id = \"03.q1\"."),
        (GAP.replace('"03.q1"', "3"), "item 3 needs 'id', a text in quotes that is not empty"),
        (
            GAP.replace("03.q1", "04.q1"),
            "item 04.q1 needs an id like 03.q1: the lesson, a dot, a name in small letters.",
        ),
        (GAP.replace("03.q1", "03.Q 1"), "item 03.Q 1 needs an id like 03.q1"),
        (GAP.replace("03.q1", r"03.q1\n"), "needs an id like 03.q1"),
        (GAP + GAP, "the id '03.q1' stands twice in lesson 03; change one of the two."),
        (GAP.replace("kind = 'gap'\n", ""), "item 03.q1 needs 'kind', a text in quotes that is not empty: kind ="),
        (
            GAP.replace("'gap'", "'gaps'"),
            "item 03.q1 has the kind 'gaps'; the kinds are predict, choose, gap, parsons.",
        ),
        (
            GAP.replace("What?", " "),
            "item 03.q1 needs 'question', a text in quotes that is not empty: question = \"...\".",
        ),
        (GAP.replace('"So."', "3"), "item 03.q1 needs 'why', a text in quotes"),
        (GAP + "lines = ['a']", "item 03.q1 has a field 'lines' that is not known; there are answers, code, id,"),
        # choose, predict
        (CHOOSE.replace("code", "cod"), "item 03.q1 has a field 'cod' that is not known"),
        (HEAD + "kind = 'choose'\noption = []", "item 03.q1 is a choose and has no 'code'; write code = \"...\"."),
        (HEAD + "kind = 'predict'", "has no 'option'; write [[item.option]], with text and says."),
        (
            CHOOSE.replace(", {text = '2', says = 'No.'}", ""),
            "needs two options or more, each another; write [[item.option]]",
        ),
        (CHOOSE.replace("'2'", "' 1'"), "needs two options or more, each another"),
        (CHOOSE.replace("'2'", "2"), "option 2 of item 03.q1 needs 'text', a text in quotes that is not empty"),
        (CHOOSE.replace("'No.'", "3"), "option 2 of item 03.q1 needs 'says', a text in quotes"),
        (
            CHOOSE.replace("says", "say"),
            "option 2 of item 03.q1 has a field 'say' that is not known; there are says, text.",
        ),
        (
            CHOOSE.replace("[{text = '1'}, ", "['1', "),
            "write each option of item 03.q1 as a table: [[item.option]], with text",
        ),
        (
            CHOOSE.replace("{text = '1'}", ", ".join(f"{{text = 'x{n}'}}" for n in range(26))),
            "has 27 options, and 26 letters",
        ),
        # gap
        (GAP.replace("____", "1"), "needs a gap in its code, or more, each written ____"),
        (GAP.replace("____", "_____"), "four underscores, and no fifth beside them."),
        (GAP.replace("____", "________"), "four underscores, and no fifth beside them."),
        (GAP.replace("['1']", "['1', '2']"), "has 1 gaps (____) and answers for 2 of them; write a text for each gap."),
        (GAP.replace("['2']", "[]"), "has 1 gaps (____) and a mistake for 0 of them"),
        (GAP.replace("answers = ['2'], ", ""), "has 1 gaps (____) and a mistake for 0 of them"),
        (
            GAP.replace("'1'", "1"),
            "'answers' of item 03.q1 is a list of texts in quotes: answers = [\"...\"], a text for each",
        ),
        (GAP.replace("['1']", "'1'"), "'answers' of item 03.q1 is a list of texts in quotes"),
        (GAP.replace("'1'", "' '"), "fills a gap with ' '; write one line, not empty, of 200 characters at most."),
        (GAP.replace("'2'", r'"2\n3"'), r"fills a gap with '2\n3'; write one line"),
        (GAP.replace("'2'", f"'{'x' * 201}'"), "of 200 characters at most."),
        (GAP.replace("'2'", "'1 '"), "has ['1'] twice among its answers and mistakes; take one of them away."),
        (
            GAP.replace("[{answers = ['2'], says = 'No.'}]", "[]"),
            "expects no mistake; write [[item.mistake]], with answers",
        ),
        (GAP.replace(", says = 'No.'", ""), "mistake 1 of item 03.q1 needs 'says', a text in quotes that is not empty"),
        (GAP.replace("says", "say"), "mistake 1 of item 03.q1 has a field 'say' that is not known"),
        # parsons
        (PARSONS.replace("after", "#"), "is a parsons and has no 'after'; write after = '''...''', which prints"),
        (PARSONS.replace("'print()'", "''"), "item 03.q1 needs 'after', a text in quotes that is not empty"),
        (PARSONS.replace("'    b = a', ", ""), "needs three lines or more to put in order, three of them different."),
        (PARSONS.replace("'    b = a'", "'    print(b)'"), "three of them different."),
        (
            PARSONS.replace("    b = a", "   b = a"),
            "has the line '   b = a'; indent it by steps of four spaces, without tabs.",
        ),
        (PARSONS.replace("'    b = a'", r'"\tb = a"'), "indent it by steps of four spaces, without tabs."),
        (
            PARSONS.replace("'    b = a'", r'"b\nc"'),
            r"has the line 'b\nc'; write one line of code, without a line break",
        ),
        (PARSONS.replace("'    b = a'", "''"), "has the line ''; write one line of code"),
        (PARSONS.replace("['for", "[3, 'for"), "'lines' of item 03.q1 is a list of texts in quotes: lines = "),
        (PARSONS.replace(", says = 'No.'", ""), "says nothing to whoever takes the distractor 'pass'; write its says."),
        (PARSONS.replace("'pass'", "'print(b)'"), "has the distractor 'print(b)' as a line or a distractor already"),
        (
            PARSONS.replace("[{text", "[{text = '  pass', says = 'x'}, {text").replace("'  pass'", "'    pass'"),
            "has the distractor 'pass' as a line or a distractor already; write another one.",
        ),
        (PARSONS.replace("'pass'", r'"a\nb"'), r"has the line 'a\nb'; write one line of code"),
        (
            PARSONS.replace("['for", "[" + ", ".join(f"'x{n}'" for n in range(23)) + ", 'for"),
            "has 27 lines and distractors, and 26 letters to name them; take some away.",
        ),
    ],
)
def test_what_is_wrong_in_a_practice_file(write: Write, text: str | bytes, says: str) -> None:
    """One sentence: the file, the item, what is wrong, and what to write."""
    assert says in refused(write(text))


def test_a_practice_file_that_can_not_be_read(write: Write) -> None:
    """A folder of that name is no file."""
    root = write("", "04_other.toml")
    (root / content.FOLDER / "03_signal.toml").mkdir()
    assert refused(root).startswith("can not be read: ")


def test_the_glossary(write: Write) -> None:
    """In the order of the alphabet, whatever the capitals; a text of several lines is one line."""
    more = TERM.replace("soft limit", "Reaper").replace("'A signal.'", "'''\nOne\n  two.'''") + "see = ['soft limit']\n"
    reaper, limit = content.terms(write(TERM + more, "glossary.toml"))
    assert (reaper.name, reaper.text, reaper.see, reaper.anchor) == ("Reaper", "One two.", ("soft limit",), "reaper")
    assert (limit.name, limit.see, limit.anchor) == ("soft limit", (), "soft-limit")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[term", "is not valid TOML"),
        ("[[word]]", "the glossary has a field 'word' that is not known; there are term."),
        ("[term]\nname = 'x'", "write each term of the glossary as a table: [[term]]."),
        ("[[term]]\ntext = 'x'", "term no. 1 needs 'name', a text in quotes"),
        (TERM.replace("'A signal.'", "''"), "term soft limit needs 'text', a text in quotes"),
        (
            TERM.replace("'03'", "3"),
            "term soft limit needs 'lesson', a text in quotes that is not empty: lesson = \"03\".",
        ),
        (TERM.replace("'03'", "'3'"), "has the lesson '3'; write its two digits, lesson = \"03\"."),
        (
            TERM + "links = []",
            "term soft limit has a field 'links' that is not known; there are lesson, name, see, text.",
        ),
        (TERM + "see = 'x'", "'see' of term soft limit is a list of texts in quotes: see = [\"hard limit\"]."),
        (TERM + "see = ['x']", "'soft limit' points to 'x', which is no other term; mend its see."),
        (TERM + "see = ['soft limit']", "'soft limit' points to 'soft limit', which is no other term; mend its see."),
        (TERM + TERM, "the term 'soft limit' needs a name that differs from others by letters or digits."),
        (
            TERM + TERM.replace("soft limit", "Soft-limit"),
            "needs a name that differs from others by letters or digits.",
        ),
        (TERM.replace("soft limit", "???"), "the term '???' needs a name that differs"),
    ],
)
def test_what_is_wrong_in_a_glossary(write: Write, text: str, says: str) -> None:
    """One sentence with the file, the term, and what to write."""
    with pytest.raises(BadNotebook) as found:
        content.terms(write(text, "glossary.toml"))
    assert "glossary.toml" in str(found.value) and says in str(found.value)


def test_a_glossary_that_is_not_there(write: Write) -> None:
    """The error names the file."""
    with pytest.raises(BadNotebook, match=r"glossary\.toml can not be read: No such file"):
        content.terms(write(""))


def test_the_course_can_be_read() -> None:
    """Every practice file and the glossary as they are."""
    assert content.all_items() and content.terms()
