"""Compiled code is kept between runs, and made anew when what it is made of changes."""

from pathlib import Path

import relboltz
from relboltz.compiling import UNCOMPILED


def test_modules_that_do_not_count_for_the_cache_compile_nothing():
    """Else an edited kernel would run as it was before."""
    package = Path(relboltz.__file__).parent
    for name in UNCOMPILED:
        sources = [package / f"{name}.py"]
        if not sources[0].exists():
            sources = list((package / name).glob("*.py"))
        assert sources, name
        for source in sources:
            text = source.read_text()
            assert "@kernel" not in text and "import kernel\n" not in text and "njit" not in text
