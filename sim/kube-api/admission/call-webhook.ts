import { request } from 'node:https';
import { timeoutSignal } from '../../../runtime/clock.ts';
import { isObject, type JsonObject } from '../object.ts';
import type { MutatingWebhook } from './webhook.ts';

const MOST_BYTES = 3_000_000;

/** Posts a review to a webhook, and returns the body of its answer. @throws Error when there is none in time */
export type PostToWebhook = (hook: MutatingWebhook, review: string) => Promise<string>;

/** Posts an AdmissionReview to a webhook and returns its response. @throws Error when there is none that can be used */
export async function callWebhook(
  hook: MutatingWebhook,
  review: JsonObject,
  uid: string,
  post: PostToWebhook = postOverTls,
): Promise<JsonObject> {
  const text = await post(hook, JSON.stringify(review));
  const answer: unknown = JSON.parse(text);
  const response = isObject(answer) ? answer['response'] : undefined;
  if (!isObject(response)) throw new Error('webhook response was absent');
  if (response['uid'] !== uid) throw new Error(`expected response.uid="${uid}", got "${String(response['uid'])}"`);
  return response;
}

/** The authority that the configuration names; the machine's own when it names none. */
function authorityOf({ client: { caBundle } }: MutatingWebhook): { readonly ca?: string } {
  return typeof caBundle === 'string' && caBundle !== '' ? { ca: Buffer.from(caBundle, 'base64').toString() } : {};
}

function postOverTls(hook: MutatingWebhook, body: string): Promise<string> {
  const { client, timeoutSeconds } = hook;
  const url = new URL(String(client['url']));
  url.searchParams.set('timeout', `${timeoutSeconds}s`);
  const tls = authorityOf(hook);
  const signal = timeoutSignal(timeoutSeconds * 1000);
  const headers = { 'content-type': 'application/json', accept: 'application/json' };
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', headers, agent: false, signal, ...tls }, (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > MOST_BYTES) sent.destroy(new Error(`the answer has more than ${MOST_BYTES} bytes`));
        else chunks.push(chunk);
      });
      response.on('error', reject);
      response.on('end', () => {
        if (response.statusCode === 200) resolve(Buffer.concat(chunks).toString());
        else reject(new Error(`an error on the server, HTTP ${response.statusCode}, has prevented the request`));
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}
