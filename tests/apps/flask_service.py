# SPDX-License-Identifier: Apache-2.0
"""A threaded Flask service that calls its peers with requests."""
import flask
import requests
import werkzeug.serving

import plan

app = flask.Flask(__name__)
session = requests.Session()  # keeps connections; the calls without it open one each


def call(service, node, number, at):
    url = service.peers[node.peer] + node.path
    if node.kind == "G":
        answer = session.get(url + "?" + node.query(number, at), timeout=30)
    else:
        body = node.body(number, at)
        data = plan.in_chunks(body) if node.kind == "C" else body
        answer = requests.post(url, data=data, headers={"Content-Type": "application/json"}, timeout=30)
    return answer.status_code, answer.content


service = plan.Service(call)


@app.route("/<path:path>", methods=["GET", "POST"])
def handle(path):
    request = flask.request
    fields = request.get_json() if request.method == "POST" else request.args
    status, body, chunked = service.handle(request.method, "/" + path, request.headers, fields)
    return flask.Response(
        plan.in_chunks(body, 8000) if chunked else body, status=status, content_type="application/json"
    )


# What app.run (threaded=True) does; it ends each connection with its answer.
service.pooled(werkzeug.serving.make_server("127.0.0.1", service.port, app, threaded=True)).serve_forever()
