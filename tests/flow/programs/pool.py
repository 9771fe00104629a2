# SPDX-License-Identifier: Apache-2.0
"""A WSGI application whose answer is the pid of the worker that gave it. Behind POOL_PEER
(a port) each answer asks that server first, over a connection of its own."""
import http.client
import os


def application(environ, start_response):
    peer = os.environ.get("POOL_PEER")
    if peer:
        connection = http.client.HTTPConnection("127.0.0.1", int(peer), timeout=10)
        connection.request("GET", environ["PATH_INFO"])
        connection.getresponse().read()
        connection.close()
    body = b"%d" % os.getpid()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
