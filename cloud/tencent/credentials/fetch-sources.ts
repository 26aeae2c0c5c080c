import { type IncomingMessage, get as plainGet } from 'node:http';
import { get as tlsGet } from 'node:https';
import { ByteCollector, collectStream } from '../../../runtime/byte-collector.ts';
import { decodeOrThrow, integer, oneOf, optional, record, required, text } from '../../../runtime/decode.ts';
import { messageOf } from '../../../runtime/error-text.ts';
import { readRegularText } from '../../../runtime/read-regular-file.ts';
import { classifyError } from '../../classify-error.ts';
import { type CloudError, isCloudError } from '../../cloud-error.ts';
import type { TencentApi } from '../requests.ts';
import { type FetchCredential, type FetchedCredential, NoKeyError } from './credential.ts';

/** Sends a GET and resolves with status and body; the port to the metadata service. */
export type HttpGet = (url: string, signal: AbortSignal) => Promise<{ readonly status: number; readonly body: string }>;

const NON_EMPTY = text(/./, 'a text that is not empty');

/**
 * Fetches a key from variables: TENCENTCLOUD_SECRET_ID, TENCENTCLOUD_SECRET_KEY and, for a temporary one,
 * TENCENTCLOUD_SESSION_TOKEN.
 */
export function fromEnvironment(env: Readonly<Record<string, string | undefined>>): FetchCredential {
  return async () => {
    const missing = ['TENCENTCLOUD_SECRET_ID', 'TENCENTCLOUD_SECRET_KEY'].filter((name) => (env[name] ?? '') === '');
    if (missing.length > 0) throw new NoKeyError(`environment: ${missing.join(' and ')} not set`);
    const token = env['TENCENTCLOUD_SESSION_TOKEN'];
    return {
      credential: {
        secretId: env['TENCENTCLOUD_SECRET_ID'] ?? '',
        secretKey: env['TENCENTCLOUD_SECRET_KEY'] ?? '',
        ...(token === undefined || token === '' ? {} : { token }),
      },
    };
  };
}

/** Largest file with a key or a token that is read, bytes. */
const MAX_FILE_BYTES = 64 * 1024;

const FILE = record(
  { secretId: required(NON_EMPTY), secretKey: required(NON_EMPTY), token: optional(NON_EMPTY) },
  'reject',
);

/**
 * Fetches a key from a file, which is read again each time: JSON `{secretId, secretKey, token?}`, or the SDK's form,
 * `secret_id = …` lines.
 */
export function fromFile(path: string): FetchCredential {
  return async () => {
    try {
      const content = readRegularText(path, MAX_FILE_BYTES);
      const value = content.trimStart().startsWith('{') ? parseJson(content, path) : parseLines(content);
      return { credential: decodeOrThrow(FILE, value, path) };
    } catch (cause) {
      throw new NoKeyError(messageOf(cause));
    }
  };
}

function parseJson(content: string, path: string): unknown {
  try {
    return JSON.parse(content);
  } catch (cause) {
    throw new Error(`${path}: no JSON`, { cause });
  }
}

const FILE_KEYS: Readonly<Record<string, string>> = { secret_id: 'secretId', secret_key: 'secretKey', token: 'token' };

function parseLines(content: string): Readonly<Record<string, string>> {
  const pairs = content.split('\n').flatMap((line) => {
    const match = /^\s*(\w+)\s*=\s*(.*?)\s*$/.exec(line);
    const key = FILE_KEYS[match?.[1] ?? ''] ?? match?.[1];
    return key === undefined ? [] : [[key, match?.[2] ?? ''] as const];
  });
  return Object.fromEntries(pairs);
}

const ROLE_ANSWER = record(
  {
    Code: required(oneOf(['Success'])),
    TmpSecretId: required(NON_EMPTY),
    TmpSecretKey: required(NON_EMPTY),
    Token: required(NON_EMPTY),
    ExpiredTime: required(integer(1, Number.MAX_SAFE_INTEGER)),
  },
  'ignore',
);

/** Codes of errors where there is no metadata service: this is no instance. */
const NOBODY: readonly string[] = ['ECONNREFUSED', 'ENOTFOUND'];

/** URL of the metadata service of an instance. */
export const METADATA_URL = 'http://metadata.tencentyun.com/latest/meta-data';

/**
 * Fetches the temporary key of the instance's role, from its metadata service.
 * @see https://www.tencentcloud.com/document/product/213/4934
 */
export function fromInstanceRole(get: HttpGet, metadataUrl: string = METADATA_URL): FetchCredential {
  const roleUrl = `${metadataUrl}/cam/security-credentials/`;
  const read = async (url: string, signal: AbortSignal): Promise<string> => {
    const { status, body } = await get(url, signal).catch((error: unknown) => {
      const isNobody = NOBODY.some((code) => error instanceof Error && 'code' in error && error.code === code);
      throw isNobody ? new NoKeyError(messageOf(error)) : error;
    });
    if (status === 404) throw new NoKeyError(`${url}: the instance carries no role; bind one to it`);
    if (status !== 200) throw new Error(`${url}: HTTP ${status}`);
    return body.trim();
  };
  return async (signal) => {
    const role = await read(roleUrl, signal);
    const url = `${roleUrl}${role}`;
    const answer = decodeOrThrow(ROLE_ANSWER, parseJson(await read(url, signal), url), url);
    return {
      credential: { secretId: answer.TmpSecretId, secretKey: answer.TmpSecretKey, token: answer.Token },
      expiresAtMs: answer.ExpiredTime * 1000,
    };
  };
}

/** A role to assume. */
export type AssumedRole = { readonly roleArn: string; readonly sessionName: string; readonly durationSeconds?: number };

/** Fetches a role's temporary key with another key, which `api` signs with. @see sts AssumeRole */
export function fromAssumedRole(api: TencentApi, role: AssumedRole): FetchCredential {
  return async (signal) => askSts('AssumeRole', signal, api.call('AssumeRole', stsRequest(role), signal));
}

/** A role that a Kubernetes ServiceAccount may assume. */
export type WebIdentity = AssumedRole & { readonly providerId: string; readonly tokenFile: string };

/**
 * Fetches a role's temporary key with the ServiceAccount token in a file, which the kubelet renews.
 * @see sts AssumeRoleWithWebIdentity
 */
export function fromWebIdentity(api: TencentApi, identity: WebIdentity): FetchCredential {
  return async (signal) => {
    const webIdentityToken = readRegularText(identity.tokenFile, MAX_FILE_BYTES).trim();
    const request = {
      ...stsRequest(identity),
      ProviderId: identity.providerId,
      WebIdentityToken: webIdentityToken,
    };
    const action = 'AssumeRoleWithWebIdentity';
    return await askSts(action, signal, api.call(action, request, signal));
  };
}

/**
 * Reads the variables that TKE sets in a Pod whose ServiceAccount has a role: TKE_PROVIDER_ID, TKE_ROLE_ARN and
 * TKE_WEB_IDENTITY_TOKEN_FILE; undefined when one is missing.
 */
export function webIdentityOfEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  sessionName: string,
): WebIdentity | undefined {
  const { TKE_PROVIDER_ID: providerId, TKE_ROLE_ARN: roleArn, TKE_WEB_IDENTITY_TOKEN_FILE: tokenFile } = env;
  if (providerId === undefined || roleArn === undefined || tokenFile === undefined) return undefined;
  return { providerId, roleArn, tokenFile, sessionName };
}

/** @throws CloudError TIMEOUT where the signal ends the call: there is a key, and STS is silent */
async function askSts(action: string, signal: AbortSignal, call: Promise<unknown>): Promise<FetchedCredential> {
  const answer = await call.catch((error: unknown) => {
    if (!signal.aborted || isCloudError(error)) throw error;
    throw classifyError({ code: 'TIMEOUT', action, text: 'no answer in time' }, error);
  });
  return decodeStsAnswer(action, answer);
}

function stsRequest(role: AssumedRole) {
  const duration = role.durationSeconds === undefined ? {} : { DurationSeconds: role.durationSeconds };
  return { RoleArn: role.roleArn, RoleSessionName: role.sessionName, ...duration };
}

const STS_ANSWER = record(
  {
    Credentials: required(
      record(
        { TmpSecretId: required(NON_EMPTY), TmpSecretKey: required(NON_EMPTY), Token: required(NON_EMPTY) },
        'ignore',
      ),
    ),
    ExpiredTime: required(integer(1, Number.MAX_SAFE_INTEGER)),
  },
  'ignore',
);

function decodeStsAnswer(action: string, value: unknown): FetchedCredential {
  const { Credentials: keys, ExpiredTime: expiredTime } = decodeOrThrow(STS_ANSWER, value, action);
  return {
    credential: { secretId: keys.TmpSecretId, secretKey: keys.TmpSecretKey, token: keys.Token },
    expiresAtMs: expiredTime * 1000,
  };
}

/**
 * Tries sources in order and fetches from the first that succeeds. @throws CloudError of the first that has an identity; else
 * an error with the message of each of them, a NoKeyError where none has a key
 */
export function fromFirstOf(sources: readonly FetchCredential[]): FetchCredential {
  return async (signal) => {
    const reasons: string[] = [];
    let [refusal, areEmpty]: [CloudError | undefined, boolean] = [undefined, true];
    for (const fetch of sources) {
      try {
        return await fetch(signal);
      } catch (error) {
        if (isCloudError(error)) refusal ??= error;
        areEmpty &&= error instanceof NoKeyError;
        if (signal.aborted) throw refusal ?? signal.reason;
        reasons.push(messageOf(error));
      }
    }
    const text = `no credentials: ${reasons.join('; ')}`;
    throw refusal ?? (areEmpty ? new NoKeyError(text) : new Error(text));
  };
}

/** Largest answer of the metadata service that is read, bytes. */
const MAX_ANSWER_BYTES = 64 * 1024;

/** Sends a GET with Node's own client. It follows no redirect, and decompresses nothing. */
export const systemHttpGet: HttpGet = async (url, signal) => {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const get = url.startsWith('https:') ? tlsGet : plainGet;
    get(url, { agent: false, signal }, resolve).on('error', reject);
  });
  const body = new ByteCollector(MAX_ANSWER_BYTES);
  const why = await collectStream(response, body);
  if (why === undefined) return { status: response.statusCode ?? 0, body: body.take().toString('utf8') };
  response.destroy();
  throw new Error(`${url}: more than ${MAX_ANSWER_BYTES} bytes, or too many pieces`);
};
