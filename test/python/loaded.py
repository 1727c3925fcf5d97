"""Modules of texts that a test writes."""

import types


def load(path, text):
    """A new module of a text, which is written to `path`; nobody can import it."""
    path.write_text(text)
    module = types.ModuleType(path.stem)
    exec(compile(text, str(path), "exec"), module.__dict__)
    return module
