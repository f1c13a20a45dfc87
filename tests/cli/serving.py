"""A `tl serve` that runs as long as a test needs it, and ways to talk to it."""

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time

MAKE_MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/make_model.py")
SMALL = ["--layers", "2", "--width", "256", "--vocabulary", "512", "--feed-forward", "512", "--heads", "4",
         "--kv-heads", "2"]


def make_model(path, *arguments):
    subprocess.run([sys.executable, MAKE_MODEL, *SMALL, *arguments, path], check=True, capture_output=True)
    return path


class Server:
    """with Server(tl, model, "--parallel", "4") as server: server.post("/tokenize", {"content": "hello"})"""

    def __init__(self, tl, model, *arguments, env=None, template="chatml"):
        command = [tl, "serve", model, "--port", "0", "--template", template, *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, **(env or {})})
        line = self.process.stdout.readline()
        match = re.match(r"listening on http://(.*):(\d+)/$", line)
        if not match:
            raise AssertionError(f"the server did not start: {line!r} {self.process.stderr.read()}")
        self.host, self.port = match[1].strip("[]"), int(match[2])
        self.key = None

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            if kind is None:
                code, errors = self.stop(twice=True)
                assert code == 0, errors
                assert "all returned" in errors, errors
            else:
                self.process.kill()
        self.process.stdout.close()
        self.process.stderr.close()

    def stop(self, twice=False, number=signal.SIGTERM):
        """Asks it to end; gives the exit code and what it wrote to stderr."""
        self.process.send_signal(number)
        if twice:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.5)
            if self.process.poll() is None:
                self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors

    def connect(self, timeout=60):
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def headers(self):
        return {"Content-Type": "application/json", **({"Authorization": f"Bearer {self.key}"} if self.key else {})}

    def ask(self, method, path, body=None, headers=None, timeout=60):
        """Status, headers and body of one request."""
        connection = self.connect(timeout)
        try:
            data = body if body is None or isinstance(body, (bytes, str)) else json.dumps(body)
            connection.request(method, path, data, {**self.headers(), **(headers or {})})
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()
        finally:
            connection.close()

    def get(self, path):
        status, _, body = self.ask("GET", path)
        assert status == 200, (path, status, body)
        return body

    def post(self, path, body):
        status, _, reply = self.ask("POST", path, body)
        assert status == 200, (path, status, reply)
        return json.loads(reply)

    def events(self, path, body):
        """The events of a stream, parsed; the last one is the text [DONE]."""
        with contextlib.closing(self.stream(path, body)) as lines:
            yield from lines

    def stream(self, path, body):
        connection = self.connect()
        try:
            connection.request("POST", path, json.dumps({**body, "stream": True}), self.headers())
            reply = connection.getresponse()
            assert reply.status == 200, (reply.status, reply.read())
            assert reply.headers["Content-Type"] == "text/event-stream", reply.headers
            while line := reply.readline():
                if line.startswith(b"data: "):
                    data = line[6:].strip().decode()
                    yield data if data == "[DONE]" else json.loads(data)
        finally:
            connection.close()

    def metrics(self):
        """Every number by its name and labels, as /metrics writes them."""
        text = self.get("/metrics").decode()
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line[0] != "#"}

    def live_bytes(self):
        """Held by tensors, without what is kept for conversations to come."""
        memory = json.loads(self.get("/memory"))
        return sum(each["live"] for each in memory["devices"]) - memory["prefix_cache"]["bytes"]

    def wait_until(self, claim, seconds=20):
        end = time.monotonic() + seconds
        while not claim():
            assert time.monotonic() < end, (claim, self.metrics())
            time.sleep(0.02)
