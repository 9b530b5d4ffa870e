"""How people and phones end a mail, in many languages. Data only."""

#: What phones and mail programs sign with: a line that begins so, whatever its case.
DEVICE_PHRASES = (
    r"(?:sent|posted|written) (?:from|via|using|by|with|on) (?:my |the |an? |iphone|ipad|mail\b|"
    r"yahoo|outlook\b|gmail|samsung|android|blackberry|windows|nokia|proton|tutanota|k-9|mobile|"
    r"mutt|gnus|thunderbird|airmail|mailbox|fairphone|nine\b|aqua|rim\b)",
    r"get outlook for ",
    r"(?:diese (?:nachricht|e-?mail) wurde )?(?:von|mit|aus) (?:meinem|meiner|dem|der|unterwegs|"
    r"outlook|mobile|yahoo|web\.de)\b.{0,60}\b(?:gesendet|verschickt|geschrieben)",
    r"(?:gesendet|verschickt|versendet) (?:von|mit|aus|über)\b",
    r"envoy(?:é|er|e) (?:de(?:puis)?|à partir|avec|par) ",
    r"(?:skickat|skickades|sendt|sent|lähetetty|verzonden|verstuurd) (?:från|fra|fran|"
    r"vanaf|van|met|via|med) ",
    r"lähetetty .{1,40}(?:sta|stä|lla|llä|lta|ltä)\b",
    r"enviado (?:desde|do|de|a partir|pelo|mediante|via|con) ",
    r"enviat (?:des|de|amb) ",
    r"inviato (?:da|dal|con|tramite) ",
    r"wysłan[eoy] (?:z|ze|przez|za pomocą) ",
    r"odesláno (?:z|ze|pomocí) ",
    r"odoslané (?:z|zo) ",
    r"(?:elküldve|küldve) .{1,60}",
    r".{1,30}(?:telefonomról|iphone-omról|készülékemről) küldve",
    r"trimis (?:de pe|din|prin) ",
    r"poslano (?:z|s|sa|iz) ",
    r".{1,30}(?:'dan|’dan|'den|’den|'umdan|’umdan|imden|ımdan) gönderildi",
    r"отправлено (?:с|со|из|от) ",
    r"надіслано (?:з|із) ",
    r"στάλθηκε από ",
    r"נשלח מ",
    r"أرسلت من|تم الإرسال من",
    r"发自我的|发自|從我的|从我的|傳送自|發自我的",
    r".{0,20}(?:から送信|より送信)",
    r".{0,20}(?:에서 보냄|에서 보냈습니다)",
)

#: Words before a name at the end: "Regards,". They are text; the name below them is signature.
CLOSINGS = frozenset(
    phrase.strip()
    for phrase in """
    regards|best regards|kind regards|kindest regards|warm regards|warmest regards|many regards
    with regards|with best regards|with kind regards|my best regards|rgds|brgds|br|kr|wkr|regard
    best|all the best|best wishes|with best wishes|kind wishes|good luck|cheers|later|ciao|bye
    yours|yours truly|yours sincerely|yours faithfully|your|sincerely|sincerely yours|very truly
    yours truly|respectfully|cordially|warmly|faithfully|peace|enjoy|have fun|happy hacking
    take care|greetings|best greetings|greets|greetz|salutations|love|hugs|see ya|see you|cu
    see you soon|talk to you soon|hth|hope this helps|hope that helps|hope it helps|share and enjoy
    thanks|thank you|many thanks|thanks a lot|thanks again|thanks in advance|thank you in advance
    thx|thanx|tia|ta|tnx|thanks very much|thank you very much|thanks and regards|thanks & regards
    thanks/regards|thanks!/regards|cheers and thanks|much appreciated|thanks for your help
    thanks for any help|thanks for your time|thanks for all your help|many thanks in advance
    mfg|mit freundlichen grüßen|mit freundlichen grüssen|mit freundlichen gruessen|lg|vg
    mit freundlichem gruß|freundliche grüße|freundliche grüsse|viele grüße|viele grüsse
    viele gruesse|liebe grüße|liebe grüsse|beste grüße|schöne grüße|herzliche grüße|gruß|gruss
    grüße|gruesse|grüsse|mit besten grüßen|servus|tschüß|tschüss|tschau|danke|vielen dank
    danke schön
    cordialement|bien cordialement|très cordialement|amicalement|bien à vous|cdlt|salutations
    sincères salutations|meilleures salutations|merci|merci d'avance|merci beaucoup|a+|à bientôt
    saludos|un saludo|saludos cordiales|un cordial saludo|atentamente|gracias|muchas gracias|salu2
    un abrazo|abrazos|hasta luego|salut|salutacions|gràcies
    atenciosamente|abraços|um abraço|abraço|obrigado|obrigada|cumprimentos|saudações|[]s|att
    cordiali saluti|distinti saluti|saluti|un saluto|grazie|cari saluti|ciao a tutti
    groeten|groet|groetjes|met vriendelijke groet|met vriendelijke groeten|mvg|bedankt|gr
    mvh|vänliga hälsningar|med vänliga hälsningar|med vänlig hälsning|hälsningar|tack|hilsen|hälsn
    med venlig hilsen|venlig hilsen|vennlig hilsen|med vennlig hilsen|mange hilsner|tak|takk|vh
    terveisin|ystävällisin terveisin|t|terv|kiitos|kiitoksia|yt
    pozdrawiam|z poważaniem|serdecznie pozdrawiam|dzięki|pozdrowienia|dziękuję
    s pozdravem|pozdrav|s pozdravom|hezký den|díky|děkuji|lp|lep pozdrav|hvala|üdv|üdvözlettel
    köszönettel|cu stimă|cu respect|mulțumesc|saygılar|saygılarımla|iyi çalışmalar|teşekkürler
    с уважением|с наилучшими пожеланиями|спасибо|з повагою|дякую|поздрави|με εκτίμηση|ευχαριστώ
    よろしくお願いします|よろしくお願いいたします|敬具|谢谢|謝謝|此致|祝好|감사합니다
    """.replace("\n", "|").split("|")
    if phrase.strip()
)
#: Closings that may address the reader: "Thanks, Jo" is not signed by Jo.
THANKS = (
    "thank", "thx", "thanx", "tia", "ta", "tnx", "merci", "danke", "gracias", "grazie", "obrigad",
    "tack", "takk", "tak", "bedankt", "kiitos", "good luck", "much", "servus", "later", "bye",
)  # fmt: skip
