import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { ApiError } from './model/api-error.ts';

/** A request as it came in. Header names in lower case. */
type SignedRequest = {
  readonly method: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: string;
};

/** What the Authorization header says. */
type Authorization = {
  readonly secretId: string;
  readonly date: string;
  readonly service: string;
  readonly signedHeaders: readonly string[];
  readonly signature: string;
};

const PATTERN =
  /^TC3-HMAC-SHA256 Credential=([^/]+)\/(\d{4}-\d\d-\d\d)\/([^/]+)\/tc3_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/;
const MOST_SKEW_SECONDS = 300;

/** Reads the Authorization header. @throws ApiError AuthFailure.SignatureFailure */
export function parseAuthorization(header: string): Authorization {
  const match = PATTERN.exec(header);
  if (match === null) throw new ApiError('AuthFailure.SignatureFailure', 'The Authorization header is malformed.');
  const [, secretId = '', date = '', service = '', signed = '', signature = ''] = match;
  return { secretId, date, service, signedHeaders: signed.split(';'), signature };
}

/**
 * Checks the signature of a request. Written from the documentation, not from the SDK, so that each checks the other.
 * @throws ApiError AuthFailure.SignatureFailure, AuthFailure.SignatureExpire
 * @see https://www.tencentcloud.com/document/api/213/33224
 */
export function verifyTc3(request: SignedRequest, auth: Authorization, secretKey: string, nowMs: number): void {
  const timestamp = Number(request.headers['x-tc-timestamp']);
  if (!Number.isInteger(timestamp)) throw new ApiError('AuthFailure.SignatureFailure', 'X-TC-Timestamp is missing.');
  if (Math.abs(nowMs / 1000 - timestamp) > MOST_SKEW_SECONDS) {
    throw new ApiError('AuthFailure.SignatureExpire', 'The request is older than five minutes.');
  }
  const isDated = new Date(timestamp * 1000).toISOString().startsWith(auth.date);
  const isHostSigned = auth.signedHeaders.includes('host') && auth.signedHeaders.includes('content-type');
  const wanted = signatureOf(request, auth, secretKey, timestamp);
  if (isDated && isHostSigned && timingSafeEqual(Buffer.from(wanted), Buffer.from(auth.signature))) return;
  throw new ApiError('AuthFailure.SignatureFailure', 'The provided credentials could not be validated.');
}

function signatureOf(request: SignedRequest, auth: Authorization, secretKey: string, timestamp: number): string {
  const canonicalHeaders = auth.signedHeaders
    .map((name) => `${name}:${canonicalValue(name, request.headers[name] ?? '')}\n`)
    .join('');
  const canonical = [
    request.method,
    '/',
    '',
    canonicalHeaders,
    auth.signedHeaders.join(';'),
    sha256(request.body),
  ].join('\n');
  const scope = `${auth.date}/${auth.service}/tc3_request`;
  const toSign = ['TC3-HMAC-SHA256', String(timestamp), scope, sha256(canonical)].join('\n');
  const dateKey = hmac(`TC3${secretKey}`, auth.date);
  const signingKey = hmac(hmac(dateKey, auth.service), 'tc3_request');
  return hmac(signingKey, toSign).toString('hex');
}

/** SDKs sign the host name without its port, though the Host header carries one. */
function canonicalValue(name: string, value: string): string {
  const text = value.trim().toLowerCase();
  return name === 'host' ? text.replace(/:\d+$/, '') : text;
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}
