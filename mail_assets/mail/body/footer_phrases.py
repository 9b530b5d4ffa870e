"""What programs write at the end of mail: how their footers begin, by program. Data only.

Each phrase is a regular expression that a footer's first line begins with, whatever its case.
A list that writes something else needs no phrase here: what repeats is learnt.
"""

#: Footers of list managers, forges, bug trackers and forums.
LIST_PHRASES = (
    # Majordomo
    r"to unsubscribe from this list: send the line",
    r"sent via \S{1,80} mailing list\b",
    # ezmlm, Debian, JISCMail, LISTSERV, Sympa
    r"to (?:un)?subscribe,? (?:e-?mail|send (?:an? )?(?:e-?mail|mail|message))\b",
    r"to unsubscribe(?: from (?:the|this)\b.{1,60}| or .{1,40})?"
    r"(?:,? (?:visit|go to|click|use|see|reply|please|follow|write to)\b|:)",
    r"to unsubscribe send (?:an? )?(?:e-?mail|mail|message)",
    r"for additional commands, e-?mail\b",
    r"you may leave the list at any time by sending the command",
    r"to leave (?:this list|the list|or manage your subscription)\b",
    r"list (?:info|archives?|guidelines)(?: page)?: +https?://",
    r"(?:un)?subscribe(?: here| info)?:? +(?:https?://|<?mailto:)",
    # Google Groups
    r"you(?:'re| are)? receive(?:d|ing) this message because you(?:'re| are)? (?:a )?subscribe[dr]",
    r"-{1,20}~[-~]{6,80}$",
    # Yahoo! Groups
    r"-{6,40} yahoo! groups sponsor -{6,40}",
    r"yahoo! groups links$",
    r"<\*> (?:to|your|join)\b",
    r"your use of yahoo! groups is subject to",
    r"community email addresses:",
    # groups.io
    r"(?:-=){6,40}-?$",
    r"groups\.io links: you receive all messages",
    # Mailman
    r"\S{1,80} mailing list -- \S{1,80}@",
    # SourceForge
    r"this sf\.net email is sponsored",
    # GitHub, GitLab, Gerrit, Launchpad, Phabricator
    r"reply to this email directly",
    r"you(?:'re| are) receiving this (?:e?-?mail |message |bug |notification )?because\b",
    r"-+ you are receiving this mail because:? -+",
    r"you received this (?:bug notification|message|e?-?mail) because\b",
    r"to view, visit https?://",
    r"to respond, reply to this email or visit",
    r"visit topic or reply to this email",
    r"mailing list: https?://launchpad\.net/",
    r"email preferences$",
    # Bugzilla, Jira
    r"configure bugmail: https?://",
    r"this (?:message|email) (?:was|is) (?:automatically (?:generated|sent)|sent) by "
    r"(?:atlassian )?jira\b",
    r"if you think it was sent incorrectly,? (?:please )?contact",
)

#: What scanners and free mail services add.
SERVICE_PHRASES = (
    r"no virus found in this (?:incoming |outgoing )?message",
    r"(?:internal virus database is out of date|checked by avg\b)",
    r"(?:incoming|outgoing) mail is certified virus free",
    r"virus-free\. (?:https?://)?www\.av",
    r"this e-?mail (?:has been|was|is) (?:checked|scanned|virus)\b.{1,60}",
    r"(?:this|the) (?:message|e-?mail) (?:has been|was) (?:checked|scanned) (?:for virus|by)\b",
    r"diese e-?mail wurde (?:von|auf)\b.{1,60}(?:avast|viren|geprüft)",
    r"l.absence de virus dans ce courrier",
    r"este (?:correo|mensaje|e-?mail) .{1,60}(?:virus|avast)",
    r"do you yahoo!\?",
    r"get your (?:private, )?free (?:@yahoo|e-?mail)\b",
    r"join the world.s largest e-?mail service",
    r"this mail (?:was )?sent (?:through|via)\b",
)

#: How companies' disclaimers begin; the paragraph must speak of a DISCLAIMER_WORDS two times.
DISCLAIMER_PHRASES = (
    r"(?:[\W_]{0,20})(?:confidentiality (?:notice|note|statement)|disclaimer|legal notice|"
    r"important(?: notice| information)?|notice of confidentiality|privileged)\b",
    r"(?:the )?(?:information|contents?)(?: contained)? (?:in|of) this "
    r"(?:e-?mail|message|electronic)",
    r"th(?:is|e)(?: attached)? (?:e-?mail|electronic|message|communication|transmission)\b",
    r"if you are not the (?:intended|named|addressee)\b",
    r"any views? or opinions?\b",
    r"diese (?:e-?mail|nachricht)\b",
    r"der inhalt dieser e-?mail\b",
    r"ce (?:message|courriel|courrier)\b",
    r"l.information contenue dans\b",
    r"este (?:mensaje|correo|e-?mail|documento)\b",
    r"esta (?:mensagem|comunicación)\b",
    r"(?:questo messaggio|le informazioni contenute)\b",
    r"(?:dit|deze) (?:bericht|e-?mail)\b",
    r"please consider the environment before print",
)
DISCLAIMER_WORDS = (
    r"confiden[tc]i|vertraulich|riservat|vertrouwelijk|privileged|intended|recipient|addressee|"
    r"empfänger|destinat|geadresseerde|disclos|unauthori[sz]ed|unbefugt|delete|lösch|vernicht|"
    r"détrui|elimin|copying|copied|monitored|legally|liabilit|viruses|before print"
)
