// The `openai` package from npm, as it is, against `tl serve`: lists models, chats, streams, is cancelled, embeds.
//   node openai_client.mjs BASE_URL     (the package is found from the current folder)
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(pathToFileURL(process.cwd() + "/"));
const { default: OpenAI } = await import(pathToFileURL(require.resolve("openai")));
const baseURL = process.argv[2];
const client = new OpenAI({ baseURL, apiKey: "secret", maxRetries: 0 });
const messages = [{ role: "system", content: "Be brief." }, { role: "user", content: "hello" }];
const long = { model: "tiny", messages, max_tokens: 1500, ignore_eos: true };

const models = [];
for await (const model of client.models.list()) models.push(model.id);
assert.deepEqual(models, ["tiny"]);

const whole = await client.chat.completions.create({ model: "tiny", messages, max_tokens: 12, temperature: 0 });
assert.equal(whole.choices[0].message.role, "assistant");
assert.ok(["stop", "length"].includes(whole.choices[0].finish_reason));

const stream = await client.chat.completions.create({
  model: "tiny", messages, max_tokens: 12, temperature: 0, stream: true, stream_options: { include_usage: true },
});
let text = "", usage = null;
for await (const part of stream) {
  text += part.choices[0]?.delta?.content ?? "";
  usage = part.usage ?? usage;
}
assert.equal(text, whole.choices[0].message.content);
assert.deepEqual(usage.completion_tokens, whole.usage.completion_tokens);

const completion = await client.completions.create({ model: "tiny", prompt: "hello", max_tokens: 5 });
assert.equal(completion.object, "text_completion");

// The package asks for base64 by itself and decodes it.
const embedding = await client.embeddings.create({ model: "tiny", input: ["hello", "there"] });
assert.equal(embedding.data.length, 2);
const length = Math.hypot(...embedding.data[0].embedding);
assert.ok(Math.abs(length - 1) < 1e-4, `a length of ${length}`);

async function metric(name) {
  const reply = await fetch(baseURL.replace("/v1", "/metrics"), { headers: { Authorization: "Bearer secret" } });
  return Number((await reply.text()).split("\n").find(line => line.startsWith(name + " ")).split(" ")[1]);
}
const endless = await client.chat.completions.create({ ...long, stream: true });
let parts = 0;
for await (const part of endless) {
  if (part.choices[0]?.delta?.content && ++parts === 3) break;  // leaving the loop cancels
}
assert.equal(parts, 3);
const controller = new AbortController();
const aborted = client.chat.completions.create(long, { signal: controller.signal });
setTimeout(() => controller.abort(), 100);
await assert.rejects(aborted, OpenAI.APIUserAbortError);
for (let i = 0; await metric("tl_requests_running") > 0; ++i) {
  assert.ok(i < 100, "what was cancelled still runs");
  await new Promise(done => setTimeout(done, 50));
}

await assert.rejects(client.chat.completions.create({ model: "other", messages }), OpenAI.NotFoundError);
await assert.rejects(client.chat.completions.create({ model: "tiny", messages, temperature: -1 }),
  error => error instanceof OpenAI.BadRequestError && error.param === "temperature");
await assert.rejects(new OpenAI({ baseURL, apiKey: "wrong", maxRetries: 0 }).models.list(), OpenAI.AuthenticationError);
console.log("models, chat, stream, completion, embedding, cancel and errors are as the client expects");
