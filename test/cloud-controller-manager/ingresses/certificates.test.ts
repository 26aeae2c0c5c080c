import { inspect } from 'node:util';
import test from 'ava';
import type { SecretFacts } from '../../../cloud-controller-manager/ingresses/plan-certificates.ts';
import { type CertificatePair, makeCertificate } from '../../../runtime/make-certificate.ts';
import { NOW_MS, path, plan, secretOf } from './plan-facts.ts';

const DAY_MS = 86_400_000;

function pair(names: readonly string[], { from = -DAY_MS, to = 90 * DAY_MS } = {}): CertificatePair {
  const spec = { commonName: 'a', use: 'server' as const, names };
  return makeCertificate({ ...spec, notBeforeMs: NOW_MS + from, notAfterMs: NOW_MS + to });
}

function secret(data: Readonly<Record<string, string>>, type = 'kubernetes.io/tls'): SecretFacts {
  const encoded = Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
  return { kind: 'found', type, data: Object.fromEntries(encoded) };
}

function tls({ cert, key }: CertificatePair): SecretFacts {
  return secret({ 'tls.crt': cert, 'tls.key': key });
}

function planWith(facts: SecretFacts, hosts: readonly string[] = ['a.example']) {
  const rules = (hosts.length === 0 ? ['a.example'] : hosts).map((host) => ({ host, http: { paths: [path('/')] } }));
  return plan({ rules, tls: [{ hosts, secretName: 'cert' }] }, {}, { secretOf: () => facts });
}

const GOOD = pair(['a.example']);

type Row = readonly [title: string, facts: SecretFacts, text: RegExp];
const REFUSED: readonly Row[] = [
  ['missing', { kind: 'missing' }, /Secret "cert": there is no such Secret/],
  ['forbidden', { kind: 'forbidden' }, /it may not be read; grant get of it by a Role of its namespace/],
  ['empty', secret({}, 'Opaque'), /it has neither qcloud_cert_id nor tls\.crt and tls\.key/],
  ['an id that is none', secret({ qcloud_cert_id: 'a b' }, 'Opaque'), /qcloud_cert_id must be the id/],
  ['three ids', secret({ qcloud_cert_id: 'abcd1234,abcd1235,abcd1236' }, 'Opaque'), /or two with a comma/],
  [
    'an authority that is none',
    secret({ qcloud_cert_id: 'abcd1234', qcloud_ca_cert_id: 'x' }),
    /qcloud_ca_cert_id must be/,
  ],
  ['no certificate', secret({ 'tls.crt': 'a', 'tls.key': GOOD.key }), /tls\.crt has no certificate in PEM/],
  ['a broken certificate', tls({ ...GOOD, cert: GOOD.cert.replace(/\n[^\n]{20}/, '\nAAAA') }), /tls\.crt is malformed/],
  ['a broken key', tls({ ...GOOD, key: GOOD.key.slice(0, 60) }), /tls\.key is not a private key in PEM/],
  ['the key of another', tls({ ...GOOD, key: pair(['a.example']).key }), /tls\.key is the key of another certificate/],
  ['expired', tls(pair(['a.example'], { to: -1_000 })), /the certificate has expired at 2025-12-31T23:59:59/],
  ['too early', tls(pair(['a.example'], { from: 1_000 })), /the certificate is valid from 2026-01-01T00:00:01/],
  ['of another host', tls(pair(['b.example'])), /the certificate is not for "a\.example"/],
];

for (const [title, facts, text] of REFUSED) {
  test(`refused: ${title}`, (t) => {
    const planned = planWith(facts);
    t.regex(planned.texts.join('\n'), text);
    t.true(planned.texts[0]?.startsWith('CertificateRefused: hosts "a.example": '));
    t.deepEqual(planned.desired?.[0]?.rules[0]?.certificate, { kind: 'asIs' });
    t.is(planned.uploads.size, 0);
  });
}

test('a Secret that is not known yet has no notice', (t) => {
  const planned = planWith({ kind: 'unknown' });
  t.deepEqual(planned.texts, []);
  t.deepEqual(planned.desired?.[0]?.rules[0]?.certificate, { kind: 'asIs' });
});

test('ids of certificates, and of the authority of clients', (t) => {
  const one = planWith(secret({ qcloud_cert_id: 'abcd1234, efgh5678', qcloud_ca_cert_id: 'ijkl9012' }, 'Opaque'));
  const certificate = { kind: 'existing', ids: ['abcd1234', 'efgh5678'], caId: 'ijkl9012' };
  t.deepEqual(one.desired?.[0]?.rules[0]?.certificate, certificate as never);
  t.deepEqual(planWith(secretOf('ids')).desired?.[0]?.rules[0]?.certificate, { kind: 'existing', ids: ['abcd1234'] });
});

test('an own certificate has the same hash each time, and another when it is renewed', (t) => {
  const hashOf = (facts: SecretFacts): unknown => planWith(facts).desired?.[0]?.rules[0]?.certificate;
  t.deepEqual(hashOf(tls(GOOD)), hashOf(tls(GOOD)));
  t.notDeepEqual(hashOf(tls(GOOD)), hashOf(tls(pair(['a.example']))));
});

test('a Secret that stays is parsed once, and its certificate expires all the same', (t) => {
  const facts = tls(GOOD);
  const planAt = (nowMs: number) =>
    plan(
      {
        rules: [{ host: 'a.example', http: { paths: [path('/')] } }],
        tls: [{ hosts: ['a.example'], secretName: 'cert' }],
      },
      {},
      { secretOf: () => facts, nowMs },
    );
  const [first, second] = [planAt(NOW_MS), planAt(NOW_MS + 1)].map(({ uploads }) => [...uploads.values()][0]);
  t.is(first, second);
  t.regex(planAt(NOW_MS + 90 * DAY_MS).texts.join(), /the certificate has expired at 2026-04-01/);
});

test('a certificate of a wildcard is for the hosts right below it', (t) => {
  const wildcard = tls(pair(['*.example.com']));
  t.deepEqual(planWith(wildcard, ['a.example.com']).texts, []);
  t.deepEqual(planWith(wildcard, ['*.example.com']).texts, []);
  t.regex(planWith(wildcard, ['a.b.example.com']).texts.join(), /not for "a\.b\.example\.com"/);
});

test('one that expires in less than 14 days is served, with a notice that does not change each day', (t) => {
  const facts = tls(pair(['a.example'], { to: 14 * DAY_MS - 1_000 }));
  const planned = planWith(facts);
  const message =
    'CertificateExpires: hosts "a.example": Secret "cert": the certificate expires at 2026-01-14T23:59:59.000Z; write a new one into the Secret';
  t.deepEqual(planned.texts, [message]);
  t.is(planned.uploads.size, 1);
  t.deepEqual(planWith(tls(pair(['a.example'], { to: 14 * DAY_MS }))).texts, []);
});

test('the default certificate is for hosts of its own names or not', (t) => {
  const planned = planWith(tls(pair(['other.example'])), []);
  t.deepEqual(planned.texts, []);
  t.is(planned.desired?.[0]?.rules[0]?.certificate?.kind, 'own');
});

test('no text form of a plan has the key', (t) => {
  const planned = planWith(tls(GOOD));
  const [own] = planned.uploads.values();
  t.true(own?.privateKey.reveal().includes('PRIVATE KEY'));
  t.is(own?.chain.trim(), GOOD.cert.trim());
  t.is(own?.expiresAtMs, NOW_MS + 90 * DAY_MS);
  const [, secretPart = ''] = GOOD.key.split('\n');
  const forms = [
    inspect(planned, { depth: 20, showHidden: true }),
    JSON.stringify([...planned.uploads]),
    String(own),
    `${inspect(own)}`,
  ];
  for (const form of forms) t.false(form.includes('PRIVATE KEY') || form.includes(secretPart));
});
