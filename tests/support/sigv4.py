# SPDX-License-Identifier: Apache-2.0
"""Signatures over the headers that a request says it signs, in the form of AWS Signature
Version 4: who receives it builds the canonical request out of the bytes that came."""
import hashlib
import hmac
import re
import urllib.parse

ACCESS, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
TIME = "20260101T120000Z"  # fixed: a run sends the same bytes each time
REGION, SERVICE = "us-east-1", "iam"
FIELD = re.compile(r"AWS4-HMAC-SHA256 Credential=(\S+), SignedHeaders=(\S+), Signature=([0-9a-f]{64})")


def _mac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signature(method, target, headers, signed, digest):
    """headers: {lower-case name: value}; signed: names in order; digest: of the body, in hex."""
    path, _, query = target.partition("?")
    pairs = sorted(urllib.parse.parse_qsl(query, keep_blank_values=True))
    quoted = "&".join("%s=%s" % (urllib.parse.quote(k, safe="-_.~"), urllib.parse.quote(v, safe="-_.~")) for k, v in pairs)
    lines = "".join("%s:%s\n" % (name, " ".join(headers[name].split())) for name in signed)
    canonical = "\n".join((method, path, quoted, lines, ";".join(signed), digest))
    time = headers["x-amz-date"]
    scope = "%s/%s/%s/aws4_request" % (time[:8], REGION, SERVICE)
    text = "\n".join(("AWS4-HMAC-SHA256", time, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    key = ("AWS4" + SECRET).encode()
    for part in (time[:8], REGION, SERVICE, "aws4_request"):
        key = _mac(key, part)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def sign(method, target, headers, body=b""):
    """The value of the Authorization field for these headers, all of which are signed."""
    headers = {name.lower(): value for name, value in headers.items()}
    signed = sorted(headers)
    made = signature(method, target, headers, signed, hashlib.sha256(body).hexdigest())
    scope = "%s/%s/%s/aws4_request" % (headers["x-amz-date"][:8], REGION, SERVICE)
    return "AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s" % (ACCESS, scope, ";".join(signed), made)


def holds(head, body_digest):
    """Whether the request whose head these bytes are carries a signature that is right."""
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    found = FIELD.fullmatch(headers.get("authorization", ""))
    if not found or not set(found[2].split(";")) <= set(headers):
        return False
    return hmac.compare_digest(found[3], signature(method, target, headers, found[2].split(";"), body_digest))
