"""Header values for tests: pieces that a decoder treats specially, and hostile values."""

from hypothesis import strategies as st

#: Strategy for values: joined pieces of syntax, and any bytes.
VALUES = st.lists(
    st.sampled_from(
        [b"=?utf-8?q?", b"=?utf-8?b?", b"?=", b"=", b"*0*=", b'"', b"\\", b";", b"''", b"\r\n "]
    )
    | st.binary(max_size=8)
).map(b"".join)

HOSTILE_VALUES = [
    b" ".join(b"=?utf-8?q?a%d?=" % i for i in range(50_000)),
    b"=?" * 300_000,
    b'"' * 300_001,
    b'"\\' * 200_000,
    b"a/b" + b"".join(b"; name*%d=x" % i for i in range(20_000)),
    b"x" + b"\r\n " * 200_000,
    b"a/b;" + b"x" * 65_000,
    b"a/b;" + b" " * 65_000,
    b"a/b;" + b'a="\\"' * 13_000,
]
