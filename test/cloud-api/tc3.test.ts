import test from 'ava';
import { parseAuthorization, verifyTc3 } from '../../sim/vpc/api/tc3.ts';

// The worked example of the signature's documentation, with the secret that it prints.
const SECRET = 'Gu5t9xGARNpq86cd98joQYCN3*******';
const AUTHORIZATION =
  'TC3-HMAC-SHA256 Credential=AKIDz8krbsJ5yKBZQpn74WFkmLPx3*******/2019-02-25/cvm/tc3_request, ' +
  'SignedHeaders=content-type;host, Signature=c492e8e41437e97a620b728c301bb8d17e7dc0c17eeabce80c20cd70fc3a78ff';
const REQUEST = {
  method: 'POST',
  headers: {
    'content-type': 'application/json; charset=utf-8',
    host: 'cvm.tencentcloudapi.com',
    'x-tc-timestamp': '1551113065',
  },
  body: '{"Limit": 1, "Filters": [{"Values": ["\\u672a\\u547d\\u540d"], "Name": "instance-name"}]}',
};
const NOW_MS = 1_551_113_065_000;

function check(change: Partial<typeof REQUEST>, secret = SECRET, nowMs = NOW_MS): string {
  try {
    verifyTc3({ ...REQUEST, ...change }, parseAuthorization(AUTHORIZATION), secret, nowMs);
    return 'accepted';
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'no ApiError';
  }
}

test('verifyTc3: is judged by the SDK over HTTP in the contract; another body, secret or host is refused', (t) => {
  t.is(check({ body: '{}' }), 'AuthFailure.SignatureFailure');
  t.is(check({}, 'another secret'), 'AuthFailure.SignatureFailure');
  t.is(check({ headers: { ...REQUEST.headers, host: 'vpc.tencentcloudapi.com' } }), 'AuthFailure.SignatureFailure');
});

test('verifyTc3: refuses what is more than five minutes old, or from the future', (t) => {
  t.is(check({}, SECRET, NOW_MS + 301_000), 'AuthFailure.SignatureExpire');
  t.is(check({}, SECRET, NOW_MS - 301_000), 'AuthFailure.SignatureExpire');
});

test('parseAuthorization: reads key, date and service, and refuses what is none', (t) => {
  t.like(parseAuthorization(AUTHORIZATION), {
    date: '2019-02-25',
    service: 'cvm',
    signedHeaders: ['content-type', 'host'],
  });
  t.throws(() => parseAuthorization('Basic abc'), { message: /malformed/ });
});
