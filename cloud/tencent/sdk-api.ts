import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Readable } from 'node:stream';
import { AbstractClient } from 'tencentcloud-sdk-nodejs/tencentcloud/common/abstract_client.js';
import { ByteCollector, collectStream } from '../../runtime/byte-collector.ts';
import { openChildSignal } from '../../runtime/child-signal.ts';
import { timeoutSignal } from '../../runtime/clock.ts';
import { messageOf } from '../../runtime/error-text.ts';
import { classifyError } from '../classify-error.ts';
import type { CredentialSource } from './credentials/credential.ts';
import { type Product, productOf, type TencentApi } from './requests.ts';

/** Where and how the cloud API is reached. */
export type TencentEndpoint = {
  /** Name of the region: `ap-guangzhou`. */
  readonly region: string;
  /** Domain of the products' hosts: `vpc.<domain>`; default `tencentcloudapi.com`. */
  readonly domain?: string;
  /** Host, optionally with a port, of single products; takes precedence over the domain. */
  readonly hosts?: Partial<Record<Product, string>>;
  /** Default https. */
  readonly protocol?: 'https' | 'http';
  /** URL of an HTTP proxy; none by default, whatever the environment contains. */
  readonly proxy?: string;
  /** Longest wait for one answer, milliseconds; default 15,000. A last resort: callers have their own deadline. */
  readonly answerTimeoutMs?: number;
};

const VERSIONS: Readonly<Record<Product, string>> = {
  vpc: '2017-03-12',
  cvm: '2017-03-12',
  clb: '2018-03-17',
  tke: '2018-05-25',
  sts: '2018-08-13',
  ssl: '2019-12-05',
};
const DEFAULT_DOMAIN = 'tencentcloudapi.com';
const DEFAULT_ANSWER_TIMEOUT_MS = 15_000;
const LATE = 'no whole answer in time';
/** The pacing runs at most this many calls at once; more connections would be idle. */
const MAX_SOCKETS = 100;

/** APIs that identify the caller by a token in the request. Their requests must not be signed. */
const UNSIGNED: readonly string[] = ['AssumeRoleWithWebIdentity'];

const NO_CREDENTIALS: CredentialSource = {
  get: async () => ({ secretId: '', secretKey: '' }),
  invalidate: () => undefined,
};

/**
 * Opens the cloud API through the official SDK, which signs and sends. Nothing is retried here.
 * @see https://www.tencentcloud.com/document/api/213/33224 TC3-HMAC-SHA256
 */
export function openSdkApi(endpoint: TencentEndpoint, credentials: CredentialSource): TencentApi {
  const clients = new Map<string, AbstractClient>();
  const clientOf = (product: Product, isUnsigned: boolean): AbstractClient => {
    const key = `${product}/${isUnsigned}`;
    // The SDK requires a credential even for requests that it does not sign.
    const made = clients.get(key) ?? openClient(endpoint, isUnsigned ? NO_CREDENTIALS : credentials, product);
    clients.set(key, made);
    return made;
  };
  return {
    call: async (action, request, signal) => {
      signal.throwIfAborted();
      const isUnsigned = UNSIGNED.includes(action);
      // Get the credentials before the SDK does: the SDK converts any error of a credential source to a text.
      if (!isUnsigned) await credentials.get(signal);
      // Of its own: what is not read of an answer keeps its connection until the request is aborted.
      const late = timeoutSignal(endpoint.answerTimeoutMs ?? DEFAULT_ANSWER_TIMEOUT_MS);
      const unread = openChildSignal(signal, late);
      const options = { signal: unread.signal, skipSign: isUnsigned };
      try {
        return await clientOf(productOf(action), isUnsigned).request(action, request, options);
      } catch (error) {
        unread.abort(undefined);
        if (signal.aborted) throw signal.reason;
        throw late.aborted
          ? classifyError({ code: 'TIMEOUT', action, text: LATE }, error)
          : classifySdkError(error, action);
      } finally {
        unread.close();
      }
    },
    renewCredentials: () => credentials.invalidate(),
  };
}

/** What the SDK reads of an answer of its HTTP client. */
type SdkAnswer = { readonly status: number; readonly body: Readable };

/**
 * Largest answer that is taken, decompressed, bytes. A page has 100 objects, of some kB each; the largest are the targets of a
 * load balancer.
 */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/**
 * Bounds the answers of a client: the SDK itself collects any number of bytes and pieces, and takes an answer for a stream of
 * events where its headers say so. Its method is private to its types alone.
 */
function boundAnswers(client: AbstractClient): AbstractClient {
  const parse = Reflect.get(client, 'parseResponse') as (answer: object) => Promise<unknown>;
  const parseBounded = async (answer: SdkAnswer): Promise<unknown> => {
    if (answer.status !== 200) return await parse.call(client, answer);
    const body = new ByteCollector(MAX_ANSWER_BYTES);
    const why = await collectStream(answer.body, body);
    if (why !== undefined) throw new Error(`an answer above ${MAX_ANSWER_BYTES} bytes, or in too many pieces`);
    const content: unknown = JSON.parse(body.take().toString('utf8'));
    return await parse.call(client, { status: 200, headers: { get: () => null }, json: async () => content });
  };
  Reflect.set(client, 'parseResponse', parseBounded);
  return client;
}

/**
 * Returns an agent for a host alone, as the HTTP client of the SDK takes one: it asks for the agent again where an answer
 * redirects, and would send the key's token there.
 */
function forHost(host: string, agent: HttpAgent): HttpAgent {
  const choose = (to: { readonly host: string; readonly pathname: string }): HttpAgent => {
    if (to.host === host && to.pathname === '/') return agent;
    throw new Error(`the answer redirects to ${to.host}, which is not followed`);
  };
  return choose as unknown as HttpAgent;
}

function openClient(endpoint: TencentEndpoint, credentials: CredentialSource, product: Product): AbstractClient {
  const protocol = endpoint.protocol ?? 'https';
  const answerTimeoutMs = endpoint.answerTimeoutMs ?? DEFAULT_ANSWER_TIMEOUT_MS;
  const agentOptions = { keepAlive: true, maxSockets: MAX_SOCKETS };
  // Without an agent the SDK uses http_proxy from the environment, even for loopback addresses.
  const agent = protocol === 'https' ? new HttpsAgent(agentOptions) : new HttpAgent(agentOptions);
  const host = endpoint.hosts?.[product] ?? `${product}.${endpoint.domain ?? DEFAULT_DOMAIN}`;
  const client = new AbstractClient(host, VERSIONS[product], {
    region: endpoint.region,
    credential: {
      getCredential: async () => {
        const { secretId, secretKey, token } = await credentials.get();
        return { secretId, secretKey, ...(token === undefined ? {} : { token }) };
      },
    },
    profile: {
      signMethod: 'TC3-HMAC-SHA256',
      language: 'en-US',
      httpProfile: {
        reqMethod: 'POST',
        protocol: `${protocol}://`,
        reqTimeout: answerTimeoutMs / 1000,
        ...(endpoint.proxy === undefined ? { agent: forHost(host, agent) } : { proxy: endpoint.proxy }),
      },
    },
  });
  return boundAnswers(client);
}

/**
 * Classifies an error of the SDK. It reports an API's error by `code`, a bad HTTP status by `httpCode`, and a broken
 * connection only by its text.
 */
function classifySdkError(error: unknown, action: string): Error {
  const text = messageOf(error);
  const code = textField(error, 'code');
  if (code !== undefined) {
    const requestId = textField(error, 'requestId');
    return classifyError({ code, action, text, ...(requestId === undefined ? {} : { requestId }) }, error);
  }
  const httpCode = (error as { readonly httpCode?: unknown }).httpCode;
  if (httpCode !== undefined) return classifyError({ code: `HTTP_${String(httpCode)}`, action, text }, error);
  return classifyError({ code: /timeout/i.test(text) ? 'TIMEOUT' : 'NETWORK', action, text }, error);
}

function textField(error: unknown, name: string): string | undefined {
  const value: unknown = typeof error === 'object' && error !== null ? Reflect.get(error, name) : undefined;
  return typeof value === 'string' && value !== '' ? value : undefined;
}
