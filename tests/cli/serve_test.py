#!/usr/bin/env python3
"""Runs `tl serve` and asks it everything. Usage: serve_test.py PATH_TO_TL

TL_TEST_SANITIZE is not empty in a build that is slow.
"""

import base64
import json
import math
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from serving import Server, make_model

TL = None
SLOW = bool(os.environ.get("TL_TEST_SANITIZE"))
MANY = 500 if SLOW else 1900  # tokens that take longer than what a test does meanwhile
CHAT = "/v1/chat/completions"
TEXT = "/v1/completions"
HELLO = [{"role": "user", "content": "hello"}]


class WithServer(unittest.TestCase):
    arguments = ()

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.model = make_model(os.path.join(folder.name, "tiny.gguf"))
        cls.server = cls.enterClassContext(cls.serve(*cls.arguments))

    @classmethod
    def serve(cls, *arguments, **options):
        return Server(TL, cls.model, *arguments, **options)

    def refused(self, status, path, body, method="POST", server=None, **options):
        got, headers, reply = (server or self.server).ask(method, path, body, **options)
        self.assertEqual(got, status, reply)
        error = json.loads(reply)["error"]
        self.assertEqual(set(error), {"message", "type", "param", "code"})
        return error, headers


class Endpoints(WithServer):
    def test_models(self):
        models = json.loads(self.server.get("/v1/models"))
        self.assertEqual((models["object"], models["data"][0]["id"]), ("list", "tiny"))
        self.assertEqual(models["data"][0]["max_model_len"], 2048)

    def test_health(self):
        self.assertEqual(json.loads(self.server.get("/health")), {"status": "ok"})

    def test_the_page_may_load_nothing_from_elsewhere(self):
        status, headers, body = self.server.ask("GET", "/")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        policy = headers["Content-Security-Policy"]
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)
        nonce = policy.split("'nonce-")[1].split("'")[0]
        self.assertIn(f'<script nonce="{nonce}">'.encode(), body)
        self.assertNotIn(b"@NONCE@", body)
        self.assertNotIn(b"innerHTML", body)
        self.assertNotEqual(nonce, self.server.ask("GET", "/")[1]["Content-Security-Policy"].split("'nonce-")[1][:32])
        self.assertEqual(self.server.ask("HEAD", "/")[0], 200)

    def test_chat(self):
        reply = self.server.post(CHAT, {"model": "tiny", "messages": HELLO, "max_tokens": 8, "ignore_eos": True, "seed": 1})
        self.assertEqual(reply["object"], "chat.completion")
        self.assertRegex(reply["id"], r"^chatcmpl-[0-9a-f]{16}$")
        choice = reply["choices"][0]
        self.assertEqual((choice["index"], choice["finish_reason"], choice["message"]["role"]), (0, "length", "assistant"))
        self.assertTrue(choice["message"]["content"])
        usage = reply["usage"]
        self.assertEqual(usage["completion_tokens"], 8)
        self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + 8)
        parts = [{"role": "user", "content": [{"type": "text", "text": "hel"}, {"type": "text", "text": "lo"}]}]
        same = self.server.post(CHAT, {"messages": parts, "max_completion_tokens": 8, "ignore_eos": True, "seed": 1})
        self.assertEqual(same["choices"][0]["message"], choice["message"])

    def test_a_stream_says_what_the_whole_says(self):
        for path, body in ((CHAT, {"messages": HELLO}), (TEXT, {"prompt": "hello"})):
            body |= {"max_tokens": 200, "ignore_eos": True, "temperature": 0}
            whole = self.server.post(path, body)
            *events, done = self.server.events(path, {**body, "stream_options": {"include_usage": True}})
            self.assertEqual(done, "[DONE]")
            self.assertEqual(events[-1]["choices"], [])
            self.assertEqual(events[-1]["usage"]["completion_tokens"], whole["usage"]["completion_tokens"])
            self.assertEqual([event["usage"] for event in events[:-1]], [None] * (len(events) - 1))
            self.assertEqual(len({event["id"] for event in events}), 1)
            choices = [event["choices"][0] for event in events[:-1]]
            self.assertEqual(choices[-1]["finish_reason"], "length")
            self.assertGreater(len(choices), 3)  # how many tokens a part has depends on how busy the machine is
            if path == CHAT:
                self.assertEqual(choices[0]["delta"]["role"], "assistant")
                text = "".join(choice["delta"].get("content", "") for choice in choices)
                self.assertEqual(text, whole["choices"][0]["message"]["content"])
            else:
                self.assertEqual("".join(choice["text"] for choice in choices), whole["choices"][0]["text"])
            self.assertNotIn("usage", next(iter(self.server.events(path, body))))

    def test_text_is_what_generate_writes(self):
        alone = subprocess.run([TL, "generate", self.model, "-p", "hello", "-n", "12", "--greedy", "--ignore-end", "--quiet"],
                               capture_output=True, text=True, check=True).stdout.rstrip("\n")
        reply = self.server.post(TEXT, {"prompt": "hello", "max_tokens": 12, "temperature": 0, "ignore_eos": True})
        self.assertEqual(reply["choices"][0]["text"].rstrip("\n"), alone)
        tokens = self.server.post("/tokenize", {"content": "hello", "add_special": True})["tokens"]
        for prompt in (tokens, ["hello"], [tokens]):
            same = self.server.post(TEXT, {"prompt": prompt, "max_tokens": 12, "temperature": 0, "ignore_eos": True})
            self.assertEqual(same["choices"], reply["choices"])
        self.assertEqual(self.server.post(TEXT, {"prompt": "hello", "ignore_eos": True})["usage"]["completion_tokens"], 16)

    def test_a_stop_string_ends_the_text(self):
        body = {"prompt": "hello", "max_tokens": 40, "temperature": 0, "ignore_eos": True}
        whole = self.server.post(TEXT, body)["choices"][0]["text"]
        stop = whole[len(whole) // 2:len(whole) // 2 + 4]
        for stops in (stop, ["xyzzy", stop]):
            choice = self.server.post(TEXT, {**body, "stop": stops})["choices"][0]
            self.assertEqual((choice["text"], choice["finish_reason"]), (whole[:whole.index(stop)], "stop"))

    def test_sampling_is_as_asked(self):
        def text(**options):
            return self.server.post(TEXT, {"prompt": "hello", "max_tokens": 12, "ignore_eos": True, **options})["choices"][0]["text"]
        hot = {"temperature": 5, "top_k": 0, "min_p": 0, "top_p": 1}
        self.assertEqual(text(seed=7, **hot), text(seed=7, **hot))
        self.assertNotEqual(text(seed=7, **hot), text(seed=8, **hot))
        self.assertNotEqual(text(**hot), text(**hot))
        greedy = text(temperature=0)
        self.assertEqual(text(temperature=5, top_k=1, seed=3), greedy)
        self.assertEqual(text(temperature=5, top_p=1e-6, seed=3), greedy)
        self.assertEqual(text(temperature=5, min_p=1, seed=3), greedy)
        self.assertNotEqual(text(temperature=0, frequency_penalty=2, presence_penalty=2, repetition_penalty=5), greedy)
        self.assertEqual(text(temperature=0, logit_bias={"300": 100}), " w300" * 12)

    def test_tokens_there_and_back(self):
        reply = self.server.post("/tokenize", {"content": "hello wörld"})
        self.assertEqual(reply["count"], len(reply["tokens"]))
        self.assertEqual(self.server.post("/detokenize", {"tokens": reply["tokens"]})["content"].replace("\u2581", " ").strip(), "hello wörld")
        pieces = self.server.post("/tokenize", {"content": "hello", "with_pieces": True})["tokens"]
        self.assertEqual(pieces[-1]["piece"], "o")
        self.assertEqual(pieces[0]["piece"], [0xE2])  # a byte that is no character
        self.assertGreater(self.server.post("/tokenize", {"messages": HELLO})["count"], 20)
        self.refused(400, "/detokenize", {"tokens": [1, 512]})
        self.refused(400, "/tokenize", {"content": 5})

    def test_embeddings_have_length_one_and_know_their_text(self):
        reply = self.server.post("/v1/embeddings", {"input": ["hello there", "hello where", "w300 w301 w302"], "model": "tiny"})
        vectors = [each["embedding"] for each in reply["data"]]
        self.assertEqual([len(each) for each in vectors], [256] * 3)
        for each in vectors:
            self.assertAlmostEqual(math.hypot(*each), 1, places=5)
        alike = sum(a * b for a, b in zip(vectors[0], vectors[1]))
        apart = sum(a * b for a, b in zip(vectors[0], vectors[2]))
        self.assertGreater(alike, apart)
        packed = self.server.post("/v1/embeddings", {"input": "hello there", "encoding_format": "base64"})["data"][0]["embedding"]
        self.assertEqual([struct.pack("<f", x) for x in vectors[0]],
                         [struct.pack("<f", x) for x in struct.unpack("<256f", base64.b64decode(packed))])
        tokens = self.server.post("/tokenize", {"content": "hello there", "add_special": True})["tokens"]
        self.assertEqual(self.server.post("/v1/embeddings", {"input": tokens})["data"][0]["embedding"], vectors[0])
        self.assertEqual(reply["usage"]["prompt_tokens"], reply["usage"]["total_tokens"])
        self.refused(400, "/v1/embeddings", {"input": []})
        self.refused(400, "/v1/embeddings", {"input": "x", "dimensions": 8})
        self.refused(400, "/v1/embeddings", {"input": "x", "encoding_format": "hex"})

    def test_what_is_wrong_is_named(self):
        for body, param in (
                ({}, "messages"), ({"messages": []}, "messages"), ({"messages": [5]}, "messages"),
                ({"messages": [{"role": "robot", "content": "x"}]}, "messages"),
                ({"messages": [{"role": "user"}]}, "messages"),
                ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages"),
                ({"messages": HELLO, "temperature": "hot"}, "temperature"), ({"messages": HELLO, "temperature": -1}, "temperature"),
                ({"messages": HELLO, "top_p": 2}, "top_p"), ({"messages": HELLO, "max_tokens": 0}, "max_tokens"),
                ({"messages": HELLO, "max_tokens": 1.5}, "max_tokens"), ({"messages": HELLO, "max_tokens": 1e300}, "max_tokens"),
                ({"messages": HELLO, "n": 2}, "n"), ({"messages": HELLO, "stop": [""]}, "stop"),
                ({"messages": HELLO, "stop": ["a"] * 99}, "stop"), ({"messages": HELLO, "stream": "yes"}, "stream"),
                ({"messages": HELLO, "stream_options": 1}, "stream_options"),
                ({"messages": HELLO, "logit_bias": {"x": 1}}, "logit_bias"), ({"messages": HELLO, "logit_bias": {"5": 500}}, "logit_bias"),
                ({"messages": HELLO, "tools": [{}]}, "tools"), ({"messages": HELLO, "logprobs": True}, "logprobs"),
                ({"messages": HELLO, "response_format": {"type": "json_object"}}, "response_format")):
            error, _ = self.refused(400, CHAT, body)
            self.assertEqual((error["param"], error["type"]), (param, "invalid_request_error"), body)
            self.assertIn(param.split("_")[0], error["message"])
        self.refused(400, CHAT, {"messages": HELLO, "logit_bias": {"99999": 1}})
        self.assertEqual(self.refused(404, CHAT, {"model": "gpt-9", "messages": HELLO})[0]["code"], "model_not_found")
        self.refused(400, TEXT, {"prompt": ["a", "b"]})
        self.refused(400, TEXT, {})
        for body in ("", "{", "[]", "null", '{"a": "\xff"}'.encode("latin-1"), '{"a": "\\ud800"}', "[" * 100000, '{"a":' * 5000):
            self.refused(400, CHAT, body)

    def test_paths_and_methods(self):
        self.refused(404, "/nothing", None, method="GET")
        self.refused(404, "/nothing", {})
        error, headers = self.refused(405, CHAT, None, method="GET")
        self.assertEqual(headers["Allow"], "POST")
        self.refused(405, "/health", {})
        self.refused(405, CHAT, None, method="OPTIONS")
        self.refused(415, CHAT, "messages=1", headers={"Content-Type": "application/x-www-form-urlencoded"})

    def test_other_pages_may_not_ask(self):
        self.refused(403, "/v1/models", None, method="GET", headers={"Origin": "https://elsewhere.example"})
        self.refused(403, "/v1/models", None, method="GET", headers={"Host": "rebound.example"})
        own = f"127.0.0.1:{self.server.port}"
        status, headers, _ = self.server.ask("GET", "/v1/models", headers={"Origin": f"http://{own}"})
        self.assertEqual((status, headers["Access-Control-Allow-Origin"]), (200, None))

    def test_metrics_count(self):
        before = self.server.metrics()
        self.server.post(TEXT, {"prompt": "count me", "max_tokens": 5, "ignore_eos": True})
        after = self.server.metrics()
        def grown(name):
            return after[name] - before.get(name, 0)
        self.assertEqual(grown("tl_generated_tokens_total"), 5)
        self.assertEqual(grown('tl_requests_total{end="finished"}'), 1)
        self.assertEqual(grown('tl_http_replies_total{path="/v1/completions",status="200"}'), 1)
        self.assertEqual(grown("tl_request_seconds_count"), 1)
        self.assertEqual(grown('tl_request_seconds_bucket{le="+Inf"}'), 1)
        self.assertEqual((after["tl_requests_running"], after["tl_requests_queued"]), (0, 0))
        self.assertGreater(after['tl_memory_peak_bytes{device="cpu"}'], 0)

    def test_memory_tells_who_holds_it(self):
        self.server.post(TEXT, {"prompt": "remember", "max_tokens": 5, "ignore_eos": True})
        memory = json.loads(self.server.get("/memory"))
        device = memory["devices"][0]
        self.assertGreaterEqual(device["peak"], device["live"])
        self.assertEqual(sum(each["bytes"] for each in device["labels"]), device["live"] + device["mapped"])
        self.assertIn("kv cache", [each["label"] for each in device["labels"]])
        self.assertGreater(memory["prefix_cache"]["bytes"], 0)

    def test_a_shared_start_is_computed_once(self):
        start = "the same words again and again, " * 6
        body = {"max_tokens": 6, "temperature": 0, "ignore_eos": True}
        first = self.server.post(TEXT, {**body, "prompt": start + "one"})
        again = self.server.post(TEXT, {**body, "prompt": start + "one"})
        other = self.server.post(TEXT, {**body, "prompt": start + "two"})
        self.assertEqual(first["choices"], again["choices"])
        shared = [each["usage"]["prompt_tokens_details"]["cached_tokens"] for each in (first, again, other)]
        self.assertEqual(shared[0], 0)
        self.assertEqual(shared[1], again["usage"]["prompt_tokens"] - 1)  # the last one is computed in any case
        self.assertGreater(shared[2], 64)
        self.assertGreaterEqual(self.server.metrics()["tl_prompt_tokens_reused_total"], shared[1] + shared[2])

    def test_a_shared_start_of_one_that_still_runs(self):
        start = "words that two of them say at once, " * 6
        events = self.server.stream(TEXT, {"prompt": start + "a", "max_tokens": 1500, "ignore_eos": True})
        next(events)  # its prompt is read
        second = self.server.post(TEXT, {"prompt": start + "b", "max_tokens": 2, "ignore_eos": True})
        self.assertGreater(second["usage"]["prompt_tokens_details"]["cached_tokens"], 64)
        events.close()

    def test_a_conversation_goes_on(self):
        body = {"max_tokens": 8, "temperature": 0, "ignore_eos": True}
        first = self.server.post(CHAT, {**body, "messages": HELLO})
        answer = first["choices"][0]["message"]
        more = self.server.post(CHAT, {**body, "messages": [*HELLO, answer, {"role": "user", "content": "and then?"}]})
        self.assertGreater(more["usage"]["prompt_tokens_details"]["cached_tokens"], first["usage"]["prompt_tokens"] - 8)

    def test_one_connection_for_several_requests(self):
        connection = self.server.connect()
        for _ in range(3):
            connection.request("POST", "/tokenize", '{"content": "x"}', {"Content-Type": "application/json"})
            self.assertEqual(json.loads(connection.getresponse().read())["count"], 4)
        local = connection.sock.getsockname()
        connection.request("GET", "/health")
        connection.getresponse().read()
        self.assertEqual(connection.sock.getsockname(), local)
        connection.close()


class Cancelling(WithServer):
    arguments = ("--parallel", "2", "--prefix-cache", "0")
    LONG = {"prompt": "on and on", "max_tokens": MANY, "ignore_eos": True}

    def is_idle(self):
        now = self.server.metrics()
        return now["tl_requests_running"] == 0 and now["tl_requests_queued"] == 0

    def test_a_closed_connection_frees_its_sequence(self):
        self.server.post(TEXT, self.LONG)  # tables that stay are made
        base = self.server.live_bytes()
        for streams in (True, False):
            before = self.server.metrics()['tl_requests_total{end="cancelled"}']
            if streams:
                events = self.server.stream(TEXT, self.LONG)
                next(events)
                events.close()
            else:
                connection = self.server.connect()
                connection.request("POST", TEXT, json.dumps(self.LONG), self.server.headers())
                self.server.wait_until(lambda: self.server.metrics()["tl_requests_running"] == 1)
                connection.close()
            self.server.wait_until(self.is_idle)
            self.assertEqual(self.server.metrics()['tl_requests_total{end="cancelled"}'], before + 1, streams)
            self.assertEqual(self.server.live_bytes(), base)

    def test_who_waits_may_leave_too(self):
        running = [self.server.stream(TEXT, self.LONG) for _ in range(2)]
        for each in running:
            next(each)
        waiting = self.server.connect()
        waiting.request("POST", TEXT, json.dumps(self.LONG), self.server.headers())
        self.server.wait_until(lambda: self.server.metrics()["tl_requests_queued"] == 1)
        waiting.close()
        self.server.wait_until(lambda: self.server.metrics()["tl_requests_queued"] == 0)
        self.assertEqual(self.server.metrics()["tl_requests_running"], 2)
        for each in running:
            each.close()
        self.server.wait_until(self.is_idle)


class Limits(WithServer):
    arguments = ("--parallel", "1", "--queue", "1", "--connections", "8", "--body", "4KiB", "--context", "256",
                 "--max-tokens", "200", "--read-timeout", "1", "--idle-timeout", "2")

    def test_a_body_that_is_too_large(self):
        self.refused(413, "/tokenize", {"content": "x" * 5000})
        connection = self.server.connect()
        chunks = iter([b"x" * 1000] * 50)
        connection.request("POST", "/tokenize", chunks, {"Content-Type": "application/json"}, encode_chunked=True)
        self.assertEqual(connection.getresponse().status, 413)
        connection.close()

    def test_a_prompt_that_does_not_fit(self):
        error, _ = self.refused(400, TEXT, {"prompt": "x " * 300})
        self.assertEqual(error["code"], "context_length_exceeded")
        full = self.server.post(TEXT, {"prompt": "x " * 40, "max_tokens": 200, "ignore_eos": True})
        self.assertEqual(full["choices"][0]["finish_reason"], "length")
        self.assertLess(full["usage"]["completion_tokens"], 200)

    def test_more_tokens_than_an_answer_may_have(self):
        self.assertEqual(self.refused(400, TEXT, {"prompt": "x", "max_tokens": 201})[0]["param"], "max_tokens")
        whole = self.server.post(CHAT, {"messages": HELLO, "ignore_eos": True})
        self.assertLessEqual(whole["usage"]["completion_tokens"], 200)

    def test_too_many_that_wait(self):
        body = {"prompt": "x", "max_tokens": 200, "ignore_eos": True}
        held = [self.server.stream(TEXT, body)]
        next(held[0])
        statuses = []
        def ask():
            statuses.append(self.server.ask("POST", TEXT, body))
        threads = [threading.Thread(target=ask) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        held[0].close()
        refused = [each for each in statuses if each[0] == 503]
        self.assertTrue(refused)
        self.assertEqual({each[0] for each in statuses} - {200}, {503})
        for _, headers, reply in refused:
            self.assertEqual(headers["Retry-After"], "1")
            self.assertEqual(json.loads(reply)["error"]["code"], "queue_full")

    def test_too_many_connections(self):
        held = [socket.create_connection((self.server.host, self.server.port)) for _ in range(8)]
        time.sleep(0.2)
        with socket.create_connection((self.server.host, self.server.port), timeout=10) as one_more:
            one_more.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertTrue(one_more.recv(100).startswith(b"HTTP/1.1 503 "))
        for each in held:
            each.close()
        self.server.wait_until(lambda: self.server.ask("GET", "/health")[0] == 200)

    def test_who_sends_slowly_is_not_waited_for(self):
        for start in (b"GET /hea", b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"):
            with socket.create_connection((self.server.host, self.server.port), timeout=20) as slow:
                begin = time.monotonic()
                slow.sendall(start)
                while slow.recv(1000):
                    pass
                self.assertLess(time.monotonic() - begin, 10)

    def test_what_is_kept_of_conversations_is_bounded(self):
        with self.serve("--prefix-cache", "200KiB") as server:  # three blocks of this model's cache
            def shared(prompt):
                body = {"prompt": prompt, "max_tokens": 2, "ignore_eos": True}
                return server.post(TEXT, body)["usage"]["prompt_tokens_details"]["cached_tokens"]
            prompts = [f"{number} is how this one begins, unlike the others" for number in range(1, 6)]
            self.assertEqual([shared(prompt) for prompt in prompts], [0] * 5)
            now = server.metrics()
            self.assertLessEqual(now["tl_prefix_cache_bytes"], 200 << 10)
            self.assertEqual(now["tl_prefix_cache_entries"], 3)
            self.assertGreater(shared(prompts[4]), 16)
            self.assertEqual(shared(prompts[0]), 0)  # the oldest made room

    def test_a_request_has_a_time(self):
        with self.serve("--timeout", "0.03") as server:  # a fast machine writes as much in 0.3 s
            body = {"prompt": "x", "max_tokens": 2000, "ignore_eos": True}
            if server.ask("POST", TEXT, body)[0] == 200:
                self.skipTest("this machine writes two thousand tokens in less time")
            self.assertEqual(self.refused(504, TEXT, body, server=server)[0]["code"], "timeout")
            *_, last = server.events(TEXT, body)
            self.assertEqual(last["error"]["code"], "timeout")


class Keys(WithServer):
    def test_a_key(self):
        for arguments, env in ((("--api-key", "secret"), {}), ((), {"TL_API_KEY": "secret"})):
            with self.serve(*arguments, env=env) as server:
                for path in ("/v1/models", "/metrics", "/memory"):
                    error, headers = self.refused(401, path, None, method="GET", server=server)
                    self.assertEqual((error["code"], headers["WWW-Authenticate"]), ("invalid_api_key", "Bearer"))
                for wrong in ("Bearer wrong", "Bearer secret2", "Bearer ", "secret", "Basic secret"):
                    self.refused(401, CHAT, {"messages": HELLO}, server=server, headers={"Authorization": wrong})
                self.assertEqual(server.ask("GET", "/")[0], 200)
                self.assertEqual(server.ask("GET", "/health")[0], 200)
                server.key = "secret"
                self.assertIn(b"tiny", server.get("/v1/models"))
                self.assertEqual(server.ask("GET", "/v1/models", headers={"Host": "my.example"})[0], 200)

    def test_an_origin_that_may_ask(self):
        origin = "https://app.example"
        with self.serve("--cors", origin) as server:
            status, headers, _ = server.ask("OPTIONS", CHAT, headers={"Origin": origin})
            self.assertEqual((status, headers["Access-Control-Allow-Origin"]), (204, origin))
            self.assertIn("content-type", headers["Access-Control-Allow-Headers"])
            self.assertEqual(server.ask("GET", "/v1/models", headers={"Origin": origin})[1]["Access-Control-Allow-Origin"], origin)
            self.refused(403, "/v1/models", None, method="GET", server=server, headers={"Origin": "https://b.example"})

    def test_a_port_that_is_taken(self):
        result = subprocess.run([TL, "serve", self.model, "--port", str(self.server.port)], capture_output=True, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"cannot listen on 127.0.0.1:{self.server.port}: Address already in use", result.stderr)

    def test_a_model_without_a_template_says_so(self):
        process = subprocess.Popen([TL, "serve", self.model, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        port = int(process.stdout.readline().rstrip("/\n").rsplit(":", 1)[1])
        self.server.port, kept = port, self.server.port
        try:
            self.assertIn("--template", self.refused(400, CHAT, {"messages": HELLO})[0]["message"])
        finally:
            self.server.port = kept
        process.terminate()
        self.assertIn("no chat template", process.communicate(timeout=60)[1])
        self.assertEqual(process.returncode, 0)


class Stopping(WithServer):
    BODY = {"prompt": "on", "max_tokens": MANY, "ignore_eos": True}

    def test_what_runs_is_finished(self):
        with self.serve("--grace", "60") as server:
            events = server.stream(TEXT, self.BODY)
            next(events)
            idle = server.connect()
            idle.request("GET", "/health")
            idle.getresponse().read()  # a connection that is kept and does nothing
            server.process.send_signal(signal.SIGTERM)
            *_, last, done = events
            self.assertEqual((last["choices"][0]["finish_reason"], done), ("length", "[DONE]"))
            with self.assertRaises(OSError):
                server.ask("GET", "/health")
            _, errors = server.process.communicate(timeout=60)
            self.assertEqual(server.process.returncode, 0, errors)
            self.assertIn("all returned", errors)
            idle.close()

    def check_cancelled(self, server, events, began):
        *_, last = events
        self.assertEqual(last["error"]["code"], "cancelled")
        _, errors = server.process.communicate(timeout=60)
        self.assertEqual(server.process.returncode, 0, errors)
        self.assertIn("all returned", errors)
        self.assertLess(time.monotonic() - began, 20)

    def test_the_second_signal_cancels(self):
        with self.serve("--grace", "1000", "--parallel", "1") as server:
            events = server.stream(TEXT, self.BODY)
            next(events)
            began = time.monotonic()
            server.process.send_signal(signal.SIGINT)
            time.sleep(0.05)
            server.process.send_signal(signal.SIGINT)
            self.check_cancelled(server, events, began)

    def test_grace_ends(self):
        with self.serve("--grace", "0.05") as server:
            events = server.stream(TEXT, self.BODY)
            next(events)
            began = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            self.check_cancelled(server, events, began)

    def test_clients_that_do_not_read_are_cut_off(self):
        with self.serve("--grace", "0.1") as server:
            with socket.create_connection((server.host, server.port)) as half:
                half.sendall(b"POST /tokenize HTTP/1.1\r\nContent-Le")
                time.sleep(0.2)
                code, errors = server.stop()
                self.assertEqual(code, 0, errors)


class Fuzz(WithServer):
    """Requests that no client sends, with a fixed seed: every one is answered or refused, and the server goes on."""

    COUNT = 120 if SLOW else 400
    GOOD = (b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s")

    def send(self, data, wait=0.5):
        with socket.create_connection((self.server.host, self.server.port), timeout=wait) as raw:
            try:
                raw.sendall(data)
                raw.shutdown(socket.SHUT_WR)
                reply = b""
                while part := raw.recv(65536):
                    reply += part
                return reply
            except OSError:
                return None

    def mutated(self, dice, data):
        data = bytearray(data)
        for _ in range(dice.choice((1, 1, 2, 5, 20))):
            at = dice.randrange(len(data) + 1)
            kind = dice.randrange(5)
            if kind == 0:
                data[at:at] = bytes(dice.randrange(256) for _ in range(dice.randrange(1, 9)))
            elif kind == 1:
                del data[at:at + dice.randrange(1, 12)]
            elif kind == 2 and at < len(data):
                data[at] ^= 1 << dice.randrange(8)
            elif kind == 3:
                data[at:at] = dice.choice((b"\r\n", b"\r\n\r\n", b"\0", b'"', b"{", b"[" * 200, b"%00", b"Transfer-Encoding: chunked\r\n",
                                           b"Content-Length: 99999999999999999999\r\n", b"Content-Length: -1\r\n", b"Range: bytes=5-1\r\n",
                                           b"Expect: 100-continue\r\n", b"ffffffffffffffff\r\n", b"-1", b"1e999", b"\xff\xfe"))
            else:
                data[at:at] = data[at // 2:at]
        return bytes(data)

    def test_malformed_http(self):
        dice = random.Random(1)
        body = json.dumps({"prompt": "hello", "max_tokens": 2, "temperature": 0.5, "stop": ["x"]}).encode()
        seeds = [self.GOOD % (len(body), body),
                 b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
                 b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                 b"5\r\n{\"con\r\nc\r\ntent\": \"hi\"}\r\n0\r\n\r\n"]
        answered = 0
        for _ in range(self.COUNT):
            reply = self.send(self.mutated(dice, dice.choice(seeds)))
            if reply:
                self.assertRegex(reply[:13], rb"^HTTP/1\.1 [1-5]\d\d")
                self.assertNotIn(b"HTTP/1.1 500", reply)
                answered += 1
        self.assertGreater(answered, self.COUNT // 3)
        self.alive()

    def test_malformed_json(self):
        dice = random.Random(2)
        values = [None, True, False, 0, -1, 1e308, -1e308, 2**63, 2**64, "", "x", "\0", "\ud83d\ude00", [], {}, [[]], [None], {"a": 1}, ["x"] * 50]
        names = ["prompt", "messages", "max_tokens", "temperature", "top_p", "top_k", "min_p", "seed", "stop", "logit_bias", "stream",
                 "stream_options", "n", "model", "input", "content", "tokens", "tools", "response_format", "logprobs", "encoding_format"]
        connection = self.server.connect(30)
        for _ in range(self.COUNT):
            body = {"prompt": "hi", "messages": HELLO, "input": "hi", "content": "hi", "tokens": [5], "max_tokens": 2}
            for name in dice.sample(names, dice.randrange(1, 4)):
                body[name] = dice.choice(values)
            data = json.dumps(body).encode()
            if dice.random() < 0.3:
                data = self.mutated(dice, data)
            path = dice.choice((CHAT, TEXT, "/v1/embeddings", "/tokenize", "/detokenize"))
            connection.request("POST", path, data, {"Content-Type": "application/json"})
            reply = connection.getresponse()
            text = reply.read()
            self.assertIn(reply.status, (200, 400, 404), (path, data, text))
        connection.close()
        self.alive()

    def test_headers_without_end(self):
        with socket.create_connection((self.server.host, self.server.port), timeout=20) as raw:
            raw.sendall(b"GET /health HTTP/1.1\r\n")
            with self.assertRaises(OSError):
                for i in range(100000):
                    raw.sendall(b"X-%d: %s\r\n" % (i, b"y" * 500))
        self.assertIn(b" 414 ", self.send(b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\n\r\n", 5) or b" 414 ")
        self.alive()

    def alive(self):
        self.assertIsNone(self.server.process.poll())
        self.server.wait_until(lambda: self.server.metrics()["tl_requests_running"] == 0)
        self.assertEqual(self.server.post(TEXT, {"prompt": "hi", "max_tokens": 2, "ignore_eos": True})["usage"]["completion_tokens"], 2)


if __name__ == "__main__":
    TL = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=1)
