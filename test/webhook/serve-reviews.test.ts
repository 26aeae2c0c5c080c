import { copyFileSync } from 'node:fs';
import test from 'ava';
import fc from 'fast-check';
import { MAX_BODY_BYTES } from '../../runtime/body-budget.ts';
import { isRecord } from '../../runtime/decode.ts';
import { applyJsonPatch } from '../../sim/kube-api/patch/json-patch.ts';
import { makeKeyPair } from '../../sim/kube-api/pki.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { assertLaw } from '../support/law.ts';
import { waitUntil } from '../support/wait-until.ts';
import { openRaw, openWebhook, post, reviewOf } from './webhook-scene.ts';

const POD = { metadata: { name: 'db-0' }, spec: { containers: [{ name: 'db', resources: {} }] } };
const scene = await openWebhook();
test.after.always(() => scene.close());

const metricsText = async () => (await fetch(`http://${scene.webhook.metricsAddress}/metrics`)).text();

test('serve: answers a review with a patch that fits the Pod', async (t) => {
  const { status, text } = await post(scene, JSON.stringify(reviewOf(POD)));
  t.is(status, 200);
  const { response, ...head }: Readonly<Record<string, unknown>> = JSON.parse(text);
  t.deepEqual(head, { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' });
  if (!isRecord(response)) return t.fail(text);
  t.like(response, { uid: 'a1b2', allowed: true, patchType: 'JSONPatch' });
  const patch: unknown = JSON.parse(Buffer.from(String(response['patch']), 'base64').toString());
  const one = { 'tke.cloud.tencent.com/eni-ip': '1' };
  t.deepEqual(at(applyJsonPatch(POD, patch), 'spec', 'containers', 0, 'resources'), { limits: one, requests: one });
});

test('serve: admits a Pod that wants nothing without a patch', async (t) => {
  const { text } = await post(scene, JSON.stringify(reviewOf({ ...POD, spec: { ...POD.spec, hostNetwork: true } })));
  t.deepEqual(at(JSON.parse(text), 'response'), { uid: 'a1b2', allowed: true });
});

const ODD: readonly (readonly [string, unknown, Readonly<Record<string, unknown>>, RegExp])[] = [
  ['no object', null, {}, /request\.object: expected an object/],
  ['a Pod without containers', { metadata: {}, spec: {} }, {}, /request\.object\.spec\.containers: expected a value/],
  ['annotations that are no texts', { ...POD, metadata: { annotations: { a: 1 } } }, {}, /annotations: expected texts/],
  [
    'limits that are a list',
    { metadata: {}, spec: { containers: [{ resources: { limits: [] } }] } },
    {},
    /limits: expected/,
  ],
  ['another operation', POD, { operation: 'UPDATE' }, /MutatingWebhookConfiguration/],
  [
    'another resource',
    POD,
    { resource: { group: 'apps', version: 'v1', resource: 'deployments' } },
    /creation of a Pod/,
  ],
  ['a subresource', POD, { subResource: 'binding' }, /creation of a Pod/],
  ['no namespace', POD, { namespace: undefined }, /request\.namespace: expected/],
];
for (const [what, object, request, warning] of ODD) {
  test(`serve: admits ${what} as it is, with a warning`, async (t) => {
    const { status, text } = await post(scene, JSON.stringify(reviewOf(object, request)));
    t.is(status, 200);
    const response = at(JSON.parse(text), 'response');
    t.true(at(response, 'allowed'));
    t.is(at(response, 'patch'), undefined);
    t.regex(String(at(response, 'warnings', 0)), warning);
  });
}

test('serve: warns in one line that a header can carry', async (t) => {
  const annotations = { 'tke.cloud.tencent.com/eip-attributes': `a\r\nb${'x'.repeat(5000)}` };
  const { text } = await post(scene, JSON.stringify(reviewOf({ ...POD, metadata: { annotations } })));
  const [warning] = at(JSON.parse(text), 'response', 'warnings') as readonly string[];
  t.regex(warning ?? '', /^tke-eni-ip-webhook: tke\.cloud\.tencent\.com\/eip-attributes: expected [^\r\n]{1,200}…?$/u);
  t.true((warning ?? '').length <= 256);
});

const REFUSED: readonly (readonly [string, string, Parameters<typeof post>[2], number, RegExp])[] = [
  ['what is not JSON', '{"kind":', {}, 400, /expected JSON/],
  ['nothing', '', {}, 400, /expected JSON/],
  ['JSON that is no review', '[1]', {}, 400, /expected an object/],
  [
    'a review of an old version',
    JSON.stringify({ ...reviewOf(POD), apiVersion: 'admission.k8s.io/v1beta1' }),
    {},
    400,
    /v1beta1/,
  ],
  ['a review without uid', JSON.stringify({ ...reviewOf(POD), request: {} }), {}, 400, /request\.uid/],
  ['another path', '{}', { path: '/' }, 404, /add-pod-eni-ip-limit/],
  ['another method', '', { method: 'GET' }, 405, /POST/],
  ['another type', '{}', { type: 'text/yaml' }, 415, /application\/json/],
  ['a body that is too large', ' '.repeat(MAX_BODY_BYTES + 1), {}, 413, /at most 1048576 bytes/],
];
for (const [what, body, options, status, why] of REFUSED) {
  test(`serve: refuses ${what} with ${status} and says why`, async (t) => {
    const got = await post(scene, body, options);
    t.is(got.status, status);
    t.regex(got.text, why);
    t.is((await post(scene, JSON.stringify(reviewOf(POD)))).status, 200);
  });
}

test('serve: stops reading a body without a length once it is too large', async (t) => {
  const socket = await openRaw(scene);
  let answer = '';
  socket.on('data', (chunk: Buffer) => {
    answer += chunk.toString();
  });
  const ended = new Promise((resolve) => socket.once('close', resolve));
  socket.on('error', () => {});
  socket.write(
    'POST /add-pod-eni-ip-limit HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n',
  );
  const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
  // Without an end: only the server can end it.
  for (let sent = 0; sent < 2 * MAX_BODY_BYTES && !socket.destroyed; sent += 0x10000) socket.write(chunk);
  await ended;
  t.regex(answer, /^HTTP\/1\.1 413 /);
});

test.serial('serve: reads only so many great bodies at once', async (t) => {
  const crowded = await openWebhook();
  const sockets = await Promise.all(Array.from({ length: 6 }, () => openRaw(crowded)));
  const answers = sockets.map((socket) => {
    const seen = { text: '' };
    socket.on('data', (chunk: Buffer) => {
      seen.text += chunk.toString();
    });
    socket.on('error', () => {});
    const head = 'POST /add-pod-eni-ip-limit HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n';
    socket.write(`${head}content-length: ${MAX_BODY_BYTES}\r\n\r\n`);
    socket.write(' '.repeat(MAX_BODY_BYTES - 1));
    return seen;
  });
  const refused = () => answers.filter(({ text }) => text.startsWith('HTTP/1.1 503'));
  await waitUntil(() => refused().length > 0, { what: 'a refusal' });
  t.regex(refused()[0]?.text ?? '', /too many large bodies/);
  for (const socket of sockets) socket.destroy();
  const body = JSON.stringify(reviewOf(POD)).padEnd(MAX_BODY_BYTES, ' ');
  // What was held is given back as soon as the connections are seen to be gone.
  await waitUntil(async () => (await post(crowded, body)).status === 200, { what: 'room' });
  await crowded.close();
});

test('serve: outlives requests that are cut off', async (t) => {
  const countOf = async () => Number(/requests_total\{outcome="cut-off"\} (\d+)/.exec(await metricsText())?.[1] ?? 0);
  const before = await countOf();
  const socket = await openRaw(scene);
  socket.write(
    'POST /add-pod-eni-ip-limit HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"a',
  );
  // The body has begun to arrive before the connection goes.
  await new Promise((resolve) => setTimeout(resolve, 50));
  socket.destroy();
  await waitUntil(async () => (await countOf()) === before + 1, { what: 'the request is counted' });
  t.is((await post(scene, JSON.stringify(reviewOf(POD)))).status, 200);
});

test('serve: answers any JSON, and always admits', async (t) => {
  await assertLaw(
    t,
    (t) =>
      fc.asyncProperty(fc.jsonValue(), async (object) => {
        const { status, text } = await post(scene, JSON.stringify(reviewOf(object)));
        t.is(status, 200);
        t.true(at(JSON.parse(text), 'response', 'allowed'));
      }),
    { numRuns: 50 },
  );
});

test.serial('serve: takes a new certificate while it runs, and shows when it ends', async (t) => {
  const own = await openWebhook();
  t.teardown(() => own.close());
  const body = JSON.stringify(reviewOf(POD));
  t.is((await post(own, body)).status, 200);
  const next = await makeKeyPair(own.folder.path, 'next');
  copyFileSync(next.certPath, own.pair.certPath);
  copyFileSync(next.keyPath, own.pair.keyPath);
  await own.webhook.checkCertificate();
  await t.throwsAsync(post(own, body), { message: /self-signed|unable to verify/ });
  t.is((await post({ ...own, pair: next }, body)).status, 200);
  const text = await (await fetch(`http://${own.webhook.metricsAddress}/metrics`)).text();
  t.regex(text, /tke_eni_ip_webhook_certificate_reloads 1/);
  t.true(Number(/certificate_expiry_seconds (\d+)/.exec(text)?.[1]) * 1000 > Date.now());
});

test('close: answers what is under way, then is gone', async (t) => {
  const own = await openWebhook({ shutdownDelayMs: 1_000 });
  const { webhook, port } = own;
  const health = async (path: string) => (await fetch(`http://${webhook.metricsAddress}${path}`)).status;
  t.is(await health('/readyz'), 200);
  const closing = own.close();
  t.is(await health('/readyz'), 503);
  t.is(await health('/healthz'), 200);
  t.is((await post(own, JSON.stringify(reviewOf(POD)))).status, 200);
  await closing;
  await t.throwsAsync(post({ ...own, port }, '{}'), { code: 'ECONNREFUSED' });
});
