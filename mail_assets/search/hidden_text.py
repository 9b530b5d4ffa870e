"""What a filter by a part of a name or subject must not see where addresses are hidden.

The pattern is PostgreSQL's, for texts in lower case: it takes out all that pages mask
(serving/addresses.py), and a little more, as which top-level domains there are is not asked.
"""

from mail_assets.mail.message.addresses import AT_MARKS

#: Characters that are not ASCII are letters: what PostgreSQL takes for one depends on its locale.
_LETTER, _LABEL = r"(?:[a-z]|[^\x01-\x7f])", r"(?:[0-9a-z_-]|[^\x01-\x7f])+"
_BLANK = r"[ \t\u00a0]"
_LOCAL = r"(?:\"[^\"\n]+\"|[^][\s\"(),/:;<>@\\]+)"
_SIGNS = (
    r"[][(){}<>|*~#%+=^\u00ab\u00bb\u2039\u203a\u27e8\u27e9\u3008-\u3011\uff08\uff09\uff3b\uff3d_-]"
    r"{1,2}"
)
_ENCODED = (
    r"(?:%(?:25){0,3}40|=40|&(?:amp;)?(?:#0{0,5}64|#x0{0,5}40|commat);"
    r"|\\(?:u00|x)40|[\uff20\ufe6b]|\\@@?|@@|\[a\]|&lt;at&gt;|/at/)"
)
_WORD = r"(?<![0-9a-z])at(?![0-9a-z])"
_DOT = (
    r"(?:[.\u3002\uff0e]|%(?:25){0,3}2e|=2e|&(?:amp;)?(?:#0{0,5}46|#x0{0,5}2e|period);"
    rf"|{_BLANK}{{0,2}}[[({{<]{{1,2}}{_BLANK}?(?:dot|\.){_BLANK}?[])}}>]{{1,2}}"
    rf"{_BLANK}{{0,2}}|{_BLANK}{{0,2}}[|*~#_-]dot[|*~#_-]{_BLANK}{{0,2}}|{_BLANK}dot{_BLANK}"
    rf"|{_BLANK}{{1,2}}\.{_BLANK}{{1,2}})"
)
_DOMAIN = rf"(?:{_LABEL}(?:{_DOT}{_LABEL})+|\[[0-9a-f.:]+\])"
_NAMED = rf"(?!www\.){_DOMAIN}(?<={_LETTER}{{2}}.{{0,4}})"
_BEFORE = rf"{_BLANK}{{0,2}}(?:{_SIGNS}{_BLANK}{{0,2}}|[\"'])?"
_BEHIND = (
    rf"{_BLANK}{{0,2}}(?:(?:{_SIGNS}|[\"']){_BLANK}{{0,2}})?"
    rf"(?:\r?\n[ \t>|]{{0,6}})?(?:{_SIGNS}{_BLANK}{{0,2}})?"
)
#: Pipermail's marks of the languages, behind what begins no prose; they hold no sign of a pattern.
_MARK = f"(?:{'|'.join(AT_MARKS)})"
_LISTED = rf"{_MARK}(?<=(?:<|mailto:){_LOCAL}{_MARK}){_DOMAIN}"
#: Signs of which every address has one: they are looked for first, in a 40th of the time.
SIGNS = "@|[\uff20\ufe6b]|40|64;|commat;|\\[a\\]|(?<![0-9a-z])at(?![0-9a-z])|<|mailto:"
#: An address, also several in a row.
ADDRESSES = (
    rf"{_LOCAL}(?:@(?:{_DOMAIN}|{_LABEL})|{_ENCODED}{_NAMED}"
    rf"|{_BEFORE}(?:@|{_ENCODED}|{_WORD}){_BEHIND}{_NAMED}|{_LISTED})+"
)
#: The parameters of statements.
HIDDEN = {"signs": SIGNS, "addresses": ADDRESSES}
