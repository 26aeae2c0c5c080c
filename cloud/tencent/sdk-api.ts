import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { AbstractClient } from 'tencentcloud-sdk-nodejs/tencentcloud/common/abstract_client.js';
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
      try {
        return await clientOf(productOf(action), isUnsigned).request(action, request, { signal, skipSign: isUnsigned });
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        throw classifySdkError(error, action);
      }
    },
    renewCredentials: () => credentials.invalidate(),
  };
}

function openClient(endpoint: TencentEndpoint, credentials: CredentialSource, product: Product): AbstractClient {
  const protocol = endpoint.protocol ?? 'https';
  const answerTimeoutMs = endpoint.answerTimeoutMs ?? DEFAULT_ANSWER_TIMEOUT_MS;
  const agentOptions = { keepAlive: true, maxSockets: MAX_SOCKETS };
  // Without an agent the SDK uses http_proxy from the environment, even for loopback addresses.
  const agent = protocol === 'https' ? new HttpsAgent(agentOptions) : new HttpAgent(agentOptions);
  return new AbstractClient(
    endpoint.hosts?.[product] ?? `${product}.${endpoint.domain ?? DEFAULT_DOMAIN}`,
    VERSIONS[product],
    {
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
          ...(endpoint.proxy === undefined ? { agent } : { proxy: endpoint.proxy }),
        },
      },
    },
  );
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
