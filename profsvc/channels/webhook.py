"""A web service of one's own as a channel: the report as JSON, signed as https://www.standardwebhooks.com says."""

import base64
import binascii
import hashlib
import hmac
import time
from hashlib import sha256

from profsvc.channels.configuration import Channel
from profsvc.channels.message import Message, to_valid_unicode
from profsvc.channels.posting import post
from profsvc.errors import UsageError

PREFIX = "whsec_"
MIN_SECRET_BYTES = 16


def send(message: Message, channel: Channel) -> str:
    """Post the JSON of a message and return where to.

    Its id is the same at every try, so that a receiver can tell a message that came twice.
    """
    body = to_valid_unicode(message.forms["json"]).encode()
    digest = sha256(f"{message.key}\n{channel.name}\n".encode() + body).hexdigest()[:32]
    headers = signed(secret_bytes(channel.secret("secret"), channel.name), f"msg_{digest}", int(time.time()), body)
    return post(channel, body, {"content-type": "application/json", **headers})


def signed(secret: bytes, identity: str, seconds: int, body: bytes) -> dict[str, str]:
    """Return the headers of a message: its id, the time it is sent, and the HMAC-SHA256 of both and the body.

    The example is the one of the specification.

    >>> secret = secret_bytes("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "c")
    >>> signed(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')["webhook-signature"]
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    """
    told = hmac.new(secret, f"{identity}.{seconds}.".encode() + body, hashlib.sha256).digest()
    signature = f"v1,{base64.b64encode(told).decode()}"
    return {"webhook-id": identity, "webhook-timestamp": str(seconds), "webhook-signature": signature}


def secret_bytes(text: str, name: str) -> bytes:
    """Return the key of a secret: what follows ``whsec_`` in base64, or the bytes of any other text."""
    try:
        own = base64.b64decode(text.removeprefix(PREFIX), validate=True) if text.startswith(PREFIX) else text.encode()
    except binascii.Error:
        raise UsageError(f"channel {name}: its secret begins with {PREFIX} but the rest of it is not base64") from None
    if len(own) < MIN_SECRET_BYTES:
        raise UsageError(f"channel {name}: its secret has {len(own)} bytes; it needs {MIN_SECRET_BYTES} or more")
    return own
