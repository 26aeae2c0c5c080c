import { X509Certificate } from 'node:crypto';
import test from 'ava';
import {
  authoritiesOf,
  type CertificateSet,
  readCertificateSet,
  renderCertificateSet,
} from '../../../kube/certificates/certificate-set.ts';
import { type CompleteSet, decideCertificates } from '../../../kube/certificates/decide-certificates.ts';

const DAY_MS = 86_400_000;
/** One day less than a server is renewed before its end. */
const STEP_DAYS = 29;
const START_MS = Date.UTC(2026, 0, 1);
const WANTED = { program: 'ours', names: ['ours.kube-system.svc', '10.96.0.61'], client: 'system:kube-scheduler' };
const NONE: CertificateSet = { earlier: [] };

const decide = (found: CertificateSet, dayOf: number, wanted = WANTED) =>
  decideCertificates(found, wanted, START_MS + dayOf * DAY_MS);
const FIRST = decide(NONE, 0).set;

/** Whether a client that trusts a bundle accepts a server at a time. */
function isTrusted(cert: string, bundle: string, nowMs: number): boolean {
  const server = new X509Certificate(cert);
  const authorities = (bundle.match(/-----BEGIN[\s\S]+?END CERTIFICATE-----/g) ?? []).map(
    (one) => new X509Certificate(one),
  );
  const isIn = (one: X509Certificate) => one.validFromDate.getTime() <= nowMs && nowMs < one.validToDate.getTime();
  return isIn(server) && authorities.some((one) => isIn(one) && server.verify(one.publicKey));
}

test('decideCertificates: over 40 years no client meets a certificate that it does not trust, with a bundle of 290 days ago', (t) => {
  let set = FIRST;
  const bundles: string[] = [];
  const clients: string[] = [];
  let authorities = 0;
  for (let day = 0; day < 40 * 365; day += STEP_DAYS) {
    const decision = decide(set, day);
    // A replica that has not looked for a whole step still serves with what it had.
    const nowMs = START_MS + day * DAY_MS;
    for (const bundle of [authoritiesOf(set), bundles.at(-10) ?? authoritiesOf(set)]) {
      if (day > 0 && !isTrusted(set.server.cert, bundle, nowMs)) return t.fail(`day ${day}: the former one`);
      if (!isTrusted(decision.set.server.cert, bundle, nowMs)) return t.fail(`day ${day}: the new one`);
    }
    if (decision.set.authority.cert !== set.authority.cert) authorities++;
    t.deepEqual(decide(decision.set, day).reasons, [], 'a second look changes nothing');
    set = decision.set;
    bundles.push(authoritiesOf(set));
    clients.push(set.client?.cert ?? '');
    t.true(authoritiesOf(set).length < 4_000, 'the bundle does not grow');
  }
  t.is(authorities, 4);
  // Clients that nobody has given a new certificate are still answered, years later.
  t.true(isTrusted(clients[0] ?? '', bundles[103] ?? '', START_MS + 103 * STEP_DAYS * DAY_MS));
});

test('decideCertificates: makes everything again after all replicas were down until all had ended', (t) => {
  const { set, reasons } = decide(FIRST, 30 * 365);
  t.true(isTrusted(set.server.cert, authoritiesOf(set), START_MS + 30 * 365 * DAY_MS));
  t.true(reasons.length >= 3);
});

test('decideCertificates: after 200 days without replicas the authority stays', (t) => {
  const { set, reasons } = decide(FIRST, 200);
  t.is(set.authority.cert, FIRST.authority.cert);
  t.deepEqual(reasons, ['certificate of the server: ended, or not valid yet']);
});

test('decideCertificates: what a clock that is late by less than a day meets is valid', (t) => {
  t.deepEqual(decide(FIRST, -0.99).reasons, []);
  t.true(isTrusted(FIRST.server.cert, authoritiesOf(FIRST), START_MS - 0.99 * DAY_MS));
  t.true(decide(FIRST, -1.01).reasons.length > 0);
});

const DATA = renderCertificateSet(FIRST);
test('readCertificateSet: reads what was written', (t) => {
  t.deepEqual(readCertificateSet(DATA), FIRST);
  const twice = decide(decide(FIRST, 9 * 365 - 10).set, 9 * 365 + 10).set;
  t.deepEqual(readCertificateSet(renderCertificateSet(twice)), twice);
});

const other = decide(NONE, 0).set;
const CUT = 'LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t';
const DAMAGES: readonly (readonly [string, object, readonly (keyof CompleteSet)[]])[] = [
  ['nothing', {}, ['authority', 'server', 'client']],
  ['the certificate cut off', { 'tls.crt': CUT }, ['authority', 'client']],
  ['the key of another certificate', { 'tls.key': renderCertificateSet(other)['tls.key'] }, ['authority', 'client']],
  [
    'a certificate of another authority',
    { 'tls.crt': renderCertificateSet(other)['tls.crt'], 'tls.key': renderCertificateSet(other)['tls.key'] },
    ['authority', 'client'],
  ],
  ['no key of the authority', { 'ca.key': undefined }, []],
  ['no authority', { 'ca.crt': '' }, []],
  ['numbers', { 'ca.crt': 1, 'ca.key': null, 'tls.crt': {}, 'tls.key': [] }, []],
];
for (const [what, damage, kept] of DAMAGES) {
  test(`decideCertificates: repairs a Secret with ${what}, and keeps the rest`, (t) => {
    const { set } = decide(readCertificateSet({ ...DATA, ...damage }), 1);
    t.true(isTrusted(set.server.cert, authoritiesOf(set), START_MS + DAY_MS));
    for (const part of ['authority', 'server', 'client'] as const) {
      t.is(JSON.stringify(set[part]) === JSON.stringify(FIRST[part]), kept.includes(part), part);
    }
    t.deepEqual(decide(set, 1).reasons, []);
    if (what === 'no key of the authority') t.true(authoritiesOf(set).includes(FIRST.authority.cert), 'still trusted');
  });
}

test('decideCertificates: another name, or another client, needs another certificate', (t) => {
  t.deepEqual(decide(FIRST, 1, { ...WANTED, names: [...WANTED.names, '10.96.0.62'] }).reasons, [
    'certificate of the server: it does not name 10.96.0.62',
  ]);
  t.deepEqual(decide(FIRST, 1, { ...WANTED, client: 'me' }).reasons, [
    'certificate of the client: it has another common name',
  ]);
  t.deepEqual(decide(FIRST, 1, { ...WANTED, names: [] }).reasons, []);
});
