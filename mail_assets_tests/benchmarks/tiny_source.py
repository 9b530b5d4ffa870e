"""Two hand-written lists with all features that a corpus must keep."""

from base64 import b64encode
from pathlib import Path

PATCH = b"--- a/tide.c\n+++ b/tide.c\n@@ -1 +1 @@\n-old\n+new\n"

#: By list and month: the messages of an archive.
ARCHIVES: dict[tuple[str, str], list[bytes]] = {
    ("tide", "2023-12"): [
        b"""Message-ID: <root.1@harbor.example>
From: Maren Skov <maren@harbor.example>
Date: Fri, 29 Dec 2023 23:10:00 +0100
Subject: The gauge at the outer pier

The gauge stops when barnacles grow on its float.
Has anybody tried copper paint?
""",
        b"""Message-ID: <reply.1@harbor.example>
From: Odd Vik <odd@harbor.example>
Date: Sat, 30 Dec 2023 08:00:00 +0000
In-Reply-To: <root.1@harbor.example>
References: <root.1@harbor.example>
Subject: Re: The gauge at the outer pier

On Friday, Maren Skov wrote:
> The gauge stops when barnacles grow on its float.
> Has anybody tried copper paint?

Copper keeps them away for a season.
""",
    ],
    ("tide", "2024-02"): [
        b"""Message-ID: <late@harbor.example>
From: =?UTF-8?Q?J=C3=B8rn_Vik?= <jorn@harbor.example>
Date: Thu, 29 Feb 2024 12:00:00 +0000
References: <root.1@harbor.example>
 <reply.1@harbor.example>
Subject: =?UTF-8?Q?M=C3=A5ling?= of the gauge
MIME-Version: 1.0
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: quoted-printable

> Copper keeps them away for a season.

Ved bryggen st=C3=A5r den nye m=C3=A5leren, painted twice, and nobody has see=
n a barnacle since.
""",
        b"""Message-ID: <crossed@harbor.example>
From: Maren Skov <maren@harbor.example>
To: tide@harbor.example, dock@harbor.example
Date: 1 Feb 2024 09:00 -0000
Subject: New berths
Content-Type: multipart/mixed; boundary="frontier"

--frontier
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: base64

"""
        + b64encode("Båtene får nye plasser at the eastern quay.\n".encode())
        + b"""

--frontier
Content-Type: text/x-patch; name="tide.patch"

"""
        + PATCH
        + b"""
--frontier--
""",
    ],
    ("dock", "2024-02"): [],
}
ARCHIVES["dock", "2024-02"] = [
    ARCHIVES["tide", "2024-02"][1],
    *(
        b"""Message-ID: <berth.%d@harbor.example>
From: Odd Vik <odd@harbor.example>
Date: Mon, 05 Feb 2024 10:00:0%d +0000
References: <ghost@harbor.example>
Subject: Berth %d

From berth %d the quay looks quiet.
"""
        % (n, n, n, n)
        for n in range(3)
    ),
]


def write_source(folder: Path) -> Path:
    """Write the archives, and a rendering of one list under another name."""
    for (name, month), messages in ARCHIVES.items():
        for list_name in (name, f"{name}-mirror") if name == "tide" else (name,):
            path = folder / list_name / f"{list_name}.{month.replace('-', '')}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(
                b"".join(
                    b"From odd@harbor.example Thu Feb  1 09:00:00 2024\n" + raw + b"\n"
                    for raw in messages
                )
            )
    return folder
