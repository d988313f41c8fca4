"""Mail as a channel: text and HTML, with the pictures of the HTML as parts of the mail, for readers show no others."""

import base64
import binascii
import re
import smtplib
import ssl
from datetime import UTC, datetime
from email.message import EmailMessage
from email.parser import BytesHeaderParser
from email.policy import SMTP, compat32
from email.utils import format_datetime
from hashlib import sha256

from profsvc.channels.configuration import Channel
from profsvc.channels.message import Message, TransientError, link_to, one_line, to_valid_unicode
from profsvc.errors import ServiceError

TIMEOUT_S = 20.0
REFUSED_SEPARATOR = "; "
"""Between whom a mail went to and whom it was refused for."""
EXPECTED_HEADERS = ("subject", "from", "to", "date", "message-id", "auto-submitted", "mime-version", "content-type")
# How a word begins that says that it is encoded. Python decodes one in what it is given, and wrote the ends of lines
# that came out of it as they were (3.11 to 3.11.9, 3.12 to 3.12.4).
ENCODED_WORD = re.compile(r"=\?")
PICTURE = re.compile(r'src="data:image/png;base64,([A-Za-z0-9+/=\s]+)"')


def send(message: Message, channel: Channel) -> str:
    """Send a mail and return to whom; raise `PassingError` where another try may do, else `ServiceError`."""
    options, mail = channel.options, compose_mail(message, channel)
    try:
        with _connect(channel) as server:
            if options["user"]:
                server.login(options["user"], channel.secret("password"))
            refused = server.send_message(mail, options["sender"], options["to"])
    except smtplib.SMTPRecipientsRefused as error:
        raise _error_from_reply(next(iter(error.recipients.values()))) from None
    except smtplib.SMTPResponseException as error:
        raise _error_from_reply((error.smtp_code, error.smtp_error)) from None
    except ssl.SSLError as error:
        raise ServiceError(f"the mail server {options['host']} is not trusted: {error.reason or error}") from None
    except (smtplib.SMTPServerDisconnected, OSError) as error:
        raise TransientError(f"the mail server {options['host']} does not answer: {error}") from None
    except smtplib.SMTPException as error:
        raise ServiceError(f"the mail server {options['host']} cannot do it: {one_line(str(error))}") from None
    taken = [address for address in options["to"] if address not in refused]
    return "mail to " + ", ".join(taken) + (f"{REFUSED_SEPARATOR}refused for {', '.join(refused)}" if refused else "")


def _connect(channel: Channel) -> smtplib.SMTP:
    host, port, security = (channel.options[name] for name in ("host", "port", "security"))
    if security == "tls":
        return smtplib.SMTP_SSL(host, port, timeout=TIMEOUT_S, context=ssl.create_default_context())
    server = smtplib.SMTP(host, port, timeout=TIMEOUT_S)
    if security == "starttls":
        try:
            server.starttls(context=ssl.create_default_context())
        except BaseException:
            server.close()
            raise
    return server


def _error_from_reply(said: tuple[int, bytes | str]) -> Exception:
    code, words = said
    text = one_line(words.decode("utf-8", "replace") if isinstance(words, bytes) else words)
    return (TransientError if 400 <= code < 500 else ServiceError)(f"the mail server refuses it: {code} {text}")


def compose_mail(message: Message, channel: Channel) -> EmailMessage:
    """Return the mail. Its head holds what the file of channels says, and a subject of one line."""
    options = channel.options
    mail = EmailMessage(policy=SMTP)
    mail["Subject"] = ENCODED_WORD.sub("= ?", one_line(message.subject, 200))
    mail["From"] = options["sender"]
    mail["To"] = ", ".join(options["to"])
    mail["Date"] = format_datetime(datetime.now(UTC))
    name = sha256(f"{message.key}\n{channel.name}\n{options['sender']}".encode()).hexdigest()[:32]
    mail["Message-ID"] = f"<{name}@profsvc>"
    mail["Auto-Submitted"] = "auto-generated"
    link = link_to(message, channel)
    mail.set_content(to_valid_unicode(message.forms["txt"]) + (f"\n{link}\n" if link else ""))
    html, pictures = _extract_pictures(to_valid_unicode(message.forms["html"]), name)
    mail.add_alternative(html, subtype="html")
    _, page = mail.iter_parts()
    for number, picture in enumerate(pictures):
        page.add_related(picture, "image", "png", cid=f"<{number}.{name}@profsvc>")
    return _require_expected_headers(mail)


def _require_expected_headers(mail: EmailMessage) -> EmailMessage:
    """Return a mail whose head, as it is sent, has what was meant and no more; raise `ServiceError` for another."""
    names = [name.lower() for name in BytesHeaderParser(policy=compat32).parsebytes(mail.as_bytes())]
    if sorted(names) != sorted(EXPECTED_HEADERS):
        more = ", ".join(sorted(set(names) - set(EXPECTED_HEADERS))) or "one twice or none"
        raise ServiceError(f"the mail was not sent: its head would also have {one_line(more)}")
    return mail


def _extract_pictures(html: str, name: str) -> tuple[str, list[bytes]]:
    """Take the pictures out of a page, which is to refer to them as parts of the mail."""
    pictures: list[bytes] = []

    def taken(found: re.Match[str]) -> str:
        try:
            pictures.append(base64.b64decode(found[1], validate=False))
        except binascii.Error:
            return found[0]
        return f'src="cid:{len(pictures) - 1}.{name}@profsvc"'

    return PICTURE.sub(taken, html), pictures
